// What fields of a software stack change in the work of a layer, a head or a step, over the whole
// table of plans.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <string_view>
#include <utility>

#include "tests/workloads/lowering/plans.h"
#include "workloads/layer_blocks.h"
#include "workloads/lowering.h"

namespace herdsim {
namespace {

using Change = std::function<void(SoftwareStack&)>;

struct Totals {
  double moved = 0, flops = 0;
  std::map<CollectiveKind, int64_t> tensor;

  double moved_over(const Totals& other) const { return moved - other.moved; }
};

Totals totals_of(const WorkTemplate& steps, const TypedVector<WorkId, Work>& works) {
  Totals totals;
  for (const TemplateStep& step : steps) {
    const Work& work = works[step.work];
    if (work.communicator == Communicator::kTensor && work.kind == WorkKind::kCollective) {
      totals.tensor[work.collective] += work.bytes.count();
    }
    for (const Kernel& kernel : work.kernels) {
      if (const auto* traffic = std::get_if<MemoryTraffic>(&kernel.work)) {
        totals.moved += static_cast<double>(traffic->moved.count()) * kernel.repeats;
      } else if (const auto* gemm = std::get_if<GemmShape>(&kernel.work)) {
        totals.flops += gemm->flops().count() * kernel.repeats;
      }
    }
  }
  return totals;
}

// A dense layer that keeps everything, in fp8 unless said.
struct Layer {
  Totals forward, backward, input, weight;
};
Layer layer_with(const PlanCase& c, const Change& change, DataType precision = DataType::kFp8) {
  PlanCase changed = c;
  changed.training.precision = precision;
  change(changed.software);
  TypedVector<WorkId, Work> works;
  const PassTemplates layer = layer_templates(changed.spec(), works, {.recomputes = false});
  return {totals_of(layer.forward, works), totals_of(layer.backward, works),
          totals_of(layer.backward_input, works), totals_of(layer.backward_weight, works)};
}

// Elements of what the products of a dense layer read and write on one rank, and of their weights.
struct Operands {
  double inputs = 0, gathered_inputs = 0, outputs = 0, gathered_outputs = 0, weights = 0;
};
Operands operands_of(const PlanCase& c) {
  const WorkloadSpec spec = c.spec();
  const LayerKernels k(spec);
  const auto t = static_cast<double>(spec.tokens());
  Operands all;
  const auto add = [&](const Product& p, bool column) {
    const auto in = t * static_cast<double>(p.in), out = t * static_cast<double>(p.out);
    (column ? all.gathered_inputs : all.inputs) += in;
    (column ? all.outputs : all.gathered_outputs) += out;
    all.weights += static_cast<double>(p.in * p.out);
  };
  for (const Product& p : k.qkv()) add(p, true);
  add(k.proj(), false);
  add(k.up(false), true);
  add(k.down(false), false);
  return all;
}

TEST(SoftwareFacts, every_operand_of_an_fp8_product_is_cast_once_and_turned_once) {
  int before_a_gather = 0;
  for (const PlanCase& c : plan_cases()) {
    if (c.software.tp_own_tokens_first) continue;
    const Operands o = operands_of(c);
    for (const bool gathers : {false, true}) {
      const Change plain = [&](SoftwareStack& s) {
        s.tp_fp8_transfers = false;
        s.tp_fp8_gathers = gathers;
      };
      const auto with = [&](double SoftwareStack::*field, DataType precision) {
        return layer_with(
            c,
            [&](SoftwareStack& s) {
              plain(s);
              s.*field = 2;
            },
            precision);
      };
      const auto check = [&](double SoftwareStack::*field, double forward, double backward) {
        const Layer base = layer_with(c, plain), more = with(field, DataType::kFp8);
        EXPECT_DOUBLE_EQ(more.forward.moved_over(base.forward), 2 * forward) << c.name;
        EXPECT_DOUBLE_EQ(more.backward.moved_over(base.backward), 2 * backward) << c.name;
        EXPECT_DOUBLE_EQ(more.backward.moved, more.input.moved + more.weight.moved) << c.name;
        EXPECT_EQ(more.forward.flops, base.forward.flops) << c.name;
        EXPECT_EQ(with(field, DataType::kBf16).backward.moved,
                  layer_with(c, plain, DataType::kBf16).backward.moved)
            << c.name;
      };
      const bool before = gathers && c.spec().splits_sequence();
      const double own = before ? 1.0 / static_cast<double>(c.plan.tp) : 1.0;
      before_a_gather += before;
      check(&SoftwareStack::fp8_input_cast_bytes, o.inputs + own * o.gathered_inputs, 0);
      check(&SoftwareStack::fp8_weight_cast_bytes, o.weights, 0);
      check(&SoftwareStack::fp8_gradient_cast_bytes, 0, o.outputs + own * o.gathered_outputs);
      check(&SoftwareStack::fp8_weight_turn_bytes, 0, o.weights);
      check(&SoftwareStack::fp8_input_turn_bytes, 0, o.inputs + o.gathered_inputs);
      check(&SoftwareStack::fp8_gradient_turn_bytes, 0, o.outputs + o.gathered_outputs);
    }
  }
  EXPECT_GT(before_a_gather, 20);
}

// q, k and v read one input, gate and up another.
TEST(SoftwareFacts, products_apart_gather_and_reduce_their_input_each) {
  int compared = 0;
  for (const PlanCase& c : plan_cases()) {
    if (c.model.is_latent() || c.plan.tp == 1) continue;
    const auto layer = [&](bool gathers, bool reduces) {
      return layer_with(
          c,
          [&](SoftwareStack& s) {
            s.tp_gathers_apart = gathers;
            s.tp_reduces_apart = reduces;
            s.tp_regather_in_backward = false;
          },
          DataType::kBf16);
    };
    const int64_t readers = 3 + c.model.mlp_matrices() - 1;
    const int64_t tensor = c.spec().activation().count();
    Layer once = layer(false, false), apart = layer(true, true);
    const bool split = c.spec().splits_sequence();
    const auto reduction = split ? CollectiveKind::kReduceScatter : CollectiveKind::kAllReduce;
    EXPECT_EQ(once.backward.tensor[reduction], 2 * tensor) << c.name;
    EXPECT_EQ(apart.backward.tensor[reduction], readers * tensor) << c.name;
    EXPECT_EQ(once.forward.tensor[CollectiveKind::kAllGather], split ? 2 * tensor : 0) << c.name;
    EXPECT_EQ(apart.forward.tensor[CollectiveKind::kAllGather], split ? readers * tensor : 0)
        << c.name;
    EXPECT_EQ(apart.forward.tensor[reduction], once.forward.tensor[reduction]) << c.name;
    ++compared;
  }
  EXPECT_GT(compared, 50);
}

TEST(SoftwareFacts, gathered_logits_come_whole_and_cost_every_rank_the_loss_of_all) {
  int compared = 0;
  for (const PlanCase& c : plan_cases()) {
    if (c.plan.tp == 1) continue;
    const auto head = [&](bool gathers) {
      PlanCase changed = c;
      changed.software.tp_gathers_logits = gathers;
      changed.software.tp_copy_bytes = 0;
      TypedVector<WorkId, Work> works;
      const PassTemplates passes = head_templates(changed.spec(), works);
      return std::pair(totals_of(passes.forward, works), totals_of(passes.backward, works));
    };
    auto [forward, backward] = head(false);
    auto [all_forward, all_backward] = head(true);
    const double loss =
        static_cast<double>(c.spec().tokens() * (c.model.vocab - c.model.vocab / c.plan.tp)) *
        c.software.logit_bytes / 2;
    EXPECT_DOUBLE_EQ(all_forward.moved_over(forward), loss) << c.name;
    EXPECT_DOUBLE_EQ(all_backward.moved_over(backward), loss) << c.name;
    EXPECT_EQ(all_forward.flops, forward.flops) << c.name;
    EXPECT_EQ(
        all_forward.tensor[CollectiveKind::kAllGather],
        forward.tensor[CollectiveKind::kAllGather] + c.spec().activation(c.model.vocab).count())
        << c.name;
    ++compared;
  }
  EXPECT_GT(compared, 50);
}

TEST(SoftwareFacts, a_replicated_table_is_gathered_whole_and_leaves_no_sums) {
  int compared = 0;
  for (const PlanCase& c : plan_cases()) {
    const auto with = [&](bool replicates) {
      PlanCase changed = c;
      changed.software.tp_replicates_table = replicates;
      TypedVector<WorkId, Work> works;
      const PassTemplates table = embedding_templates(changed.spec(), works);
      const UnitParameters unit = unit_parameters(changed.spec(), UnitKind::kEmbedding);
      return std::pair(unit.dense, totals_of(table.forward, works).tensor.size());
    };
    const bool whole = c.plan.tp > 1 && !c.model.tied_embeddings;
    EXPECT_EQ(with(true).first, with(false).first * (whole ? c.plan.tp : 1)) << c.name;
    EXPECT_EQ(with(true).second, whole ? 0 : with(false).second) << c.name;
    compared += whole;
  }
  EXPECT_GT(compared, 50);
}

TEST(SoftwareFacts, repeated_heads_make_the_pieces_of_a_ring_as_many_times_as_large) {
  int compared = 0;
  for (const PlanCase& c : plan_cases()) {
    if (c.plan.cp == 1 || c.plan.context != ContextParallel::kRing || c.model.is_latent()) continue;
    const auto moved = [&](bool repeats) {
      PlanCase changed = c;
      changed.software.ring_repeats_kv = repeats;
      int64_t bytes = 0;
      for_each_op(changed.lower(), [&](ProgramId, OpId, const Op&, const Work& work) {
        if (work.communicator == Communicator::kContext &&
            work.collective == CollectiveKind::kSendRecv) {
          bytes += work.bytes.count();
        }
      });
      return bytes;
    };
    const int64_t groups = c.model.heads / c.plan.tp / kv_heads_on_rank(c.model, c.plan.tp);
    EXPECT_EQ(moved(true), groups * moved(false)) << c.name;
    ++compared;
  }
  EXPECT_GT(compared, 3);
}

// Summed up over the micro-batches, gradients meet once; parameters are gathered as before.
TEST(SoftwareFacts, gradients_that_are_reduced_once_move_once) {
  int compared = 0;
  for (const PlanCase& c : plan_cases()) {
    const bool by_unit = c.plan.shard == Sharding::kZero2 || c.plan.shard == Sharding::kZero3;
    if (!by_unit || c.row().layout == ChunkLayout::kBidirectional) continue;
    const auto bytes = [&](bool once, std::string_view begins) {
      PlanCase changed = c;
      changed.software.dp_reduces_once = once;
      int64_t sum = 0;
      for_each_op(changed.lower(), [&](ProgramId, OpId, const Op&, const Work& work) {
        if (work.name.starts_with(begins)) sum += work.bytes.count();
      });
      return sum;
    };
    EXPECT_EQ(bytes(true, "reduce ") * c.shape().micro_batches, bytes(false, "reduce ")) << c.name;
    EXPECT_EQ(bytes(true, "gather "), bytes(false, "gather ")) << c.name;
    compared += bytes(true, "reduce ") > 0;
  }
  EXPECT_GT(compared, 10);
}

}  // namespace
}  // namespace herdsim
