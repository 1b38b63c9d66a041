// Laws of the templates of passes over the whole table of plans: however a pass is cut, the same is computed and moved.
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <utility>

#include "tests/workloads/lowering/plans.h"
#include "workloads/lowering.h"

namespace herdsim {
namespace {

struct PassTotals {
  double flops = 0, moved = 0;
  std::map<std::pair<Communicator, CollectiveKind>, int64_t> transferred;
};

void add(const WorkTemplate& steps, const TypedVector<WorkId, Work>& works, PassTotals& totals) {
  for (const TemplateStep& step : steps) {
    const Work& work = works[step.work];
    if (work.kind == WorkKind::kCollective) {
      totals.transferred[{work.communicator, work.collective}] += work.bytes.count();
    }
    for (const Kernel& kernel : work.kernels) {
      if (const auto* gemm = std::get_if<GemmShape>(&kernel.work)) {
        totals.flops += gemm->flops().count() * kernel.repeats;
      } else if (const auto* attention = std::get_if<AttentionShape>(&kernel.work)) {
        totals.flops += attention->flops().count() * kernel.repeats;
      } else {
        totals.moved += static_cast<double>(std::get<MemoryTraffic>(kernel.work).moved.count()) *
                        kernel.repeats;
      }
    }
  }
}

using TemplateMaker = PassTemplates (*)(const WorkloadSpec&, TypedVector<WorkId, Work>&);

PassTemplates layers_as_planned(const WorkloadSpec& spec, TypedVector<WorkId, Work>& works) {
  return layer_templates(spec, works, {.has_experts = spec.model.is_moe()});
}

TEST(PassTemplates, a_split_backward_pass_does_what_the_whole_one_does) {
  for (const PlanCase& c : plan_cases()) {
    TypedVector<WorkId, Work> works;
    for (const TemplateMaker templates :
         {&layers_as_planned, &embedding_templates, &head_templates}) {
      const PassTemplates passes = templates(c.spec(), works);
      PassTotals whole, split;
      add(passes.backward, works, whole);
      add(passes.backward_input, works, split);
      add(passes.backward_weight, works, split);
      EXPECT_EQ(split.flops, whole.flops) << c.name;
      EXPECT_EQ(split.moved, whole.moved) << c.name;
      EXPECT_EQ(split.transferred, whole.transferred) << c.name;
    }
  }
}

// Steps that are over when the template's last step is.
std::set<int> over_with_last(const WorkTemplate& steps, const TypedVector<WorkId, Work>& works) {
  std::set<int> over;
  std::vector<int> open = {static_cast<int>(steps.size()) - 1};
  while (!open.empty()) {
    const int step = open.back();
    open.pop_back();
    if (step == kBefore || !over.insert(step).second) continue;
    const TemplateStep& at = steps[static_cast<size_t>(step)];
    open.insert(open.end(), at.after.begin(), at.after.end());
    for (int before = 0; before < step; ++before) {
      const WorkId earlier = steps[static_cast<size_t>(before)].work;
      if (works[earlier].stream == works[at.work].stream) open.push_back(before);
    }
  }
  return over;
}

TEST(PassTemplates, nothing_is_computed_or_transferred_that_nobody_waits_for) {
  for (const PlanCase& c : plan_cases()) {
    TypedVector<WorkId, Work> works;
    const PassTemplates layer = layers_as_planned(c.spec(), works);
    const PassTemplates head = head_templates(c.spec(), works);
    for (const WorkTemplate PassTemplates::*part :
         {&PassTemplates::forward, &PassTemplates::backward, &PassTemplates::backward_input,
          &PassTemplates::backward_weight}) {
      for (const WorkTemplate* steps : {&(layer.*part), &(head.*part)}) {
        EXPECT_EQ(over_with_last(*steps, works).size(), steps->size()) << c.name;
      }
    }
  }
}

PassTotals totals_of_passes(const PlanCase& c) {
  PassTotals totals;
  TypedVector<WorkId, Work> works;
  for (const TemplateMaker templates : {&layers_as_planned, &head_templates}) {
    const PassTemplates passes = templates(c.spec(), works);
    add(passes.forward, works, totals);
    add(passes.backward, works, totals);
  }
  return totals;
}

TEST(PassTemplates, however_transfers_overlap_the_same_bytes_and_flops_move) {
  for (const PlanCase& c : plan_cases()) {
    PlanCase whole = c;
    whole.software.tp_overlap = TpOverlap::kNone;
    PlanCase chunked = c;
    chunked.software.tp_overlap = TpOverlap::kChunked;
    PlanCase own_first = whole;
    own_first.software.tp_own_tokens_first = true;
    const PassTotals b = totals_of_passes(whole);
    for (const PlanCase& other : {chunked, own_first}) {
      const PassTotals a = totals_of_passes(other);
      EXPECT_EQ(a.flops, b.flops) << c.name;
      EXPECT_EQ(a.moved, b.moved) << c.name;
      EXPECT_EQ(a.transferred, b.transferred) << c.name;
    }
  }
}

// Two of the forward pass, two of the backward pass.
TEST(PassTemplates, products_on_own_tokens_wait_for_no_gather) {
  int found = 0;
  for (const PlanCase& c : plan_cases()) {
    if (c.plan.tp == 1 || !c.plan.sequence_parallel || c.model.is_moe() || c.model.is_latent() ||
        c.training.recompute != Recompute::kNone || c.software.tp_overlap != TpOverlap::kNone) {
      continue;
    }
    PlanCase own_first = c;
    own_first.software.tp_own_tokens_first = true;
    TypedVector<WorkId, Work> works;
    const PassTemplates layer = layers_as_planned(own_first.spec(), works);
    for (const WorkTemplate PassTemplates::*part : {&PassTemplates::forward, &PassTemplates::backward}) {
      int own = 0;
      const WorkTemplate& steps = layer.*part;
      for (size_t s = 0; s < steps.size(); ++s) {
        if (!works[steps[s].work].name.ends_with(", own tokens")) continue;
        ++own;
        ASSERT_GT(s, 0);
        EXPECT_EQ(works[steps[s - 1].work].collective, CollectiveKind::kAllGather) << c.name;
        EXPECT_EQ(steps[s].after, steps[s - 1].after) << c.name;
        EXPECT_EQ(std::get<GemmShape>(works[steps[s].work].kernels.front().work).m * c.plan.tp, c.spec().tokens());
      }
      EXPECT_EQ(own, 2) << c.name;
      found += own;
    }
  }
  EXPECT_GT(found, 0);
}

// Of the transfers of a layer's forward pass over the tensor-parallel group all are halved, or the
// gathers alone; of the backward pass the reductions of input gradients are not.
TEST(PassTemplates, fp8_transfers_halve_all_but_the_reduced_input_gradients) {
  int compared = 0;
  for (const PlanCase& c : plan_cases()) {
    if (!c.spec().splits_sequence()) continue;
    const auto moved = [&](DataType precision, bool fp8_transfers, bool fp8_gathers,
                           const WorkTemplate PassTemplates::*part, CollectiveKind kind) {
      PlanCase variant = c;
      variant.training.precision = precision;
      variant.software.tp_fp8_transfers = fp8_transfers;
      variant.software.tp_fp8_gathers = fp8_gathers;
      TypedVector<WorkId, Work> works;
      const PassTemplates layer = layer_templates(variant.spec(), works, {.recomputes = false});
      int64_t sum = 0;
      for (const TemplateStep& step : layer.*part) {
        const Work& work = works[step.work];
        if (work.stream == Stream::kTp && work.collective == kind) sum += work.bytes.count();
      }
      return sum;
    };
    for (const auto part : {&PassTemplates::forward, &PassTemplates::backward}) {
      for (const auto kind : {CollectiveKind::kAllGather, CollectiveKind::kReduceScatter}) {
        const int64_t plain = moved(DataType::kFp8, false, false, part, kind);
        const bool kept =
            part == &PassTemplates::backward && kind == CollectiveKind::kReduceScatter;
        EXPECT_EQ(moved(DataType::kFp8, true, false, part, kind), kept ? plain : plain / 2)
            << c.name;
        const bool gathers = kind == CollectiveKind::kAllGather;
        EXPECT_EQ(moved(DataType::kFp8, false, true, part, kind), gathers ? plain / 2 : plain)
            << c.name;
        EXPECT_EQ(moved(DataType::kBf16, true, true, part, kind), plain) << c.name;
        compared += plain > 0;
      }
    }
  }
  EXPECT_GT(compared, 100);
}

}  // namespace
}  // namespace herdsim
