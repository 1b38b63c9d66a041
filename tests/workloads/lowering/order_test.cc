// Laws of the op graph over the whole table of plans: nothing starts before what it needs, and everything can start.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <vector>

#include "tests/workloads/lowering/plans.h"
#include "workloads/lowering.h"
#include "workloads/stage_layout.h"

namespace herdsim {
namespace {

// Runs the graph without time: what is done when nothing more can start. Collectives inside a
// stage meet ranks of the same program, so only the whole job's and messages tie programs together.
size_t ops_that_never_start(const OpGraph& graph) {
  const size_t programs = graph.programs.size();
  std::vector<std::vector<bool>> done(programs);
  std::vector<std::array<size_t, kStreams>> cursor(programs);
  size_t left = 0;
  for (size_t p = 0; p < programs; ++p) {
    done[p].assign(graph.programs[ProgramId(p)].ops.size(), false);
    left += done[p].size();
  }
  for (bool moved = true; moved;) {
    moved = false;
    for (size_t p = 0; p < programs; ++p) {
      const Program& program = graph.programs[ProgramId(p)];
      for (size_t s = 0; s < kStreams; ++s) {
        if (static_cast<Stream>(s) == Stream::kReceive) continue;
        for (; cursor[p][s] < program.stream_order[s].size(); ++cursor[p][s]) {
          const OpId id = program.stream_order[s][cursor[p][s]];
          const Op& op = program.ops[id.index()];
          bool ready = true;
          for (const OpId d : program.dependencies_of(op)) ready = ready && done[p][d.index()];
          if (!ready) break;
          done[p][id.index()] = true;
          --left;
          moved = true;
          if (graph.works[op.work].kind == WorkKind::kSend) {
            done[op.peer.index()][op.receive.index()] = true;
            --left;
          }
        }
      }
    }
  }
  return left;
}

TEST(LoweringOrder, every_op_can_start) {
  for (const PlanCase& c : plan_cases()) EXPECT_EQ(ops_that_never_start(c.lower()), 0u) << c.name;
}

TEST(LoweringOrder, ops_wait_for_earlier_ops_only) {
  for (const PlanCase& c : plan_cases()) {
    const OpGraph graph = c.lower();
    for_each_op(graph, [&](ProgramId program, OpId id, const Op& op, const Work&) {
      for (const OpId d : graph.programs[program].dependencies_of(op)) ASSERT_LT(d, id) << c.name;
    });
  }
}

// By op: the last compute op that is over when it starts, or -1.
std::vector<int64_t> last_computed(const OpGraph& graph, const Program& program) {
  std::vector<int64_t> last(program.ops.size(), -1);
  std::array<int64_t, kStreams> before;
  before.fill(-1);
  for (size_t o = 0; o < program.ops.size(); ++o) {
    const Work& work = graph.works[program.ops[o].work];
    const auto stream = static_cast<size_t>(work.stream);
    const auto after = [&](size_t op) {
      const bool computes = graph.works[program.ops[op].work].kind == WorkKind::kCompute;
      last[o] = std::max(last[o], computes ? static_cast<int64_t>(op) : last[op]);
    };
    if (before[stream] >= 0 && work.stream != Stream::kReceive) {
      after(static_cast<size_t>(before[stream]));
    }
    for (const OpId d : program.dependencies_of(program.ops[o])) after(d.index());
    before[stream] = static_cast<int64_t>(o);
  }
  return last;
}

bool makes_gradients(const Work& work) {
  for (const Kernel& kernel : work.kernels) {
    const auto* gemm = std::get_if<GemmShape>(&kernel.work);
    if (gemm != nullptr && gemm->pass == GemmPass::kWgrad) return true;
  }
  return work.name == "embedding gradient";
}

TEST(LoweringOrder, a_reduction_waits_for_every_gradient_issued_before_it) {
  for (const PlanCase& c : plan_cases()) {
    const OpGraph graph = c.lower();
    for (const Program& program : graph.programs) {
      const std::vector<int64_t> last = last_computed(graph, program);
      int64_t gradient = -1;
      for (size_t o = 0; o < program.ops.size(); ++o) {
        const Work& work = graph.works[program.ops[o].work];
        if (makes_gradients(work)) gradient = static_cast<int64_t>(o);
        const bool reduces = work.name.starts_with("reduce ") || work.name == "gradient norm";
        if (!reduces) continue;
        ASSERT_GE(last[o], gradient) << c.name << ", " << work.name << ", op " << o;
      }
    }
  }
}

TEST(LoweringOrder, gradients_of_the_head_that_are_deferred_come_after_the_stages_passes) {
  int64_t seen = 0;
  for (const PlanCase& c : plan_cases()) {
    const int64_t deferred =
        deferred_head_gradients(c.model, c.software, c.plan, c.row(), c.shape().micro_batches);
    if (deferred == 0) continue;
    const OpGraph graph = c.lower();
    int64_t late = 0;
    for (const Program& program : graph.programs) {
      bool behind = false;
      for (const OpId id : program.stream_order[static_cast<size_t>(Stream::kCompute)]) {
        const Work& work = graph.works[program.ops[id.index()].work];
        if (work.name == "logits wgrad") {
          behind = true;
          ++late;
        } else if (behind) {
          EXPECT_EQ(work.name, "optimizer") << c.name;
        }
      }
    }
    EXPECT_EQ(late, deferred) << c.name;
    seen += late;
  }
  EXPECT_GT(seen, 0);
}

TEST(LoweringOrder, the_optimizer_waits_for_every_other_compute_op_and_reduction) {
  for (const PlanCase& c : plan_cases()) {
    const OpGraph graph = c.lower();
    for (const Program& program : graph.programs) {
      const OpId optimizer = program.stream_order[static_cast<size_t>(Stream::kCompute)].back();
      EXPECT_EQ(graph.works[program.ops[optimizer.index()].work].name, "optimizer") << c.name;
      const OpId norm = program.stream_order[static_cast<size_t>(Stream::kDp)].back();
      EXPECT_EQ(graph.works[program.ops[norm.index()].work].name, "gradient norm") << c.name;
      const auto waits = program.dependencies_of(program.ops[optimizer.index()]);
      EXPECT_EQ(std::count(waits.begin(), waits.end(), norm), 1) << c.name;
    }
  }
}

// It launches nothing of a pass before it has read what the pass starts from.
TEST(LoweringOrder, a_host_reads_each_message_that_it_waits_for) {
  for (PlanCase c : plan_cases()) {
    if (c.software.pass_overlap) continue;
    c.software.host_microseconds_per_message = 500;
    c.software.host_microseconds_per_layer_forward = c.software.host_microseconds_per_layer_backward = 100;
    for (const bool waits : {false, true}) {
      c.software.p2p_async = !waits;
      const OpGraph graph = c.lower();
      size_t receives = 0, reads = 0;
      for_each_op(graph, [&](ProgramId program, OpId, const Op& op, const Work& work) {
        if (work.kind == WorkKind::kReceive) ++receives;
        if (work.name != "read message") return;
        ++reads;
        const auto before = graph.programs[program].dependencies_of(op);
        ASSERT_EQ(before.size(), 1u) << c.name;
        const Op& receive = graph.programs[program].ops[before.front().index()];
        EXPECT_EQ(graph.works[receive.work].kind, WorkKind::kReceive) << c.name;
      });
      EXPECT_EQ(reads, waits ? receives : 0u) << c.name;
    }
  }
}

// A pair of passes is what the two are, in another order.
TEST(LoweringOrder, the_host_waits_for_counts_of_tokens_unless_a_capacity_says_them) {
  std::set<bool> waited;
  for (const PlanCase& c : plan_cases()) {
    if (!c.model.is_moe() || c.software.host_microseconds_for_expert_counts <= 0) continue;
    const OpGraph graph = c.lower();
    bool waits = false;
    for (const Work& work : graph.works) waits = waits || work.name == "read counts";
    EXPECT_EQ(waits, c.training.expert_capacity_factor == 0) << c.name;
    waited.insert(waits);
  }
  EXPECT_EQ(waited.size(), 2U);
}

// One stream for both: a reduction that waits for its gradients would hold up the next gather.
TEST(LoweringOrder, a_backward_pass_gathers_the_next_unit_before_it_reduces_one) {
  int checked = 0;
  for (const PlanCase& c : plan_cases()) {
    // A split backward pass reduces in its weight half and gathers in its input half.
    // Replicas of shards reduce twice, one after the other.
    if (c.plan.shard != Sharding::kZero3 || !c.software.dp_overlap || c.row().splits_backward ||
        c.plan.is_hybrid()) {
      continue;
    }
    const OpGraph graph = c.lower();
    for (size_t p = 0; p < graph.programs.size(); ++p) {
      const Program& program = graph.programs[ProgramId(p)];
      const std::vector<OpId>& order = program.stream_order[static_cast<size_t>(Stream::kDp)];
      const auto pass = [&](size_t i) {
        const Op& op = program.ops[order[i].index()];
        return std::pair(op.micro_batch, op.chunk);
      };
      const auto name = [&](size_t i) -> const std::string& {
        return graph.works[program.ops[order[i].index()].work].name;
      };
      for (size_t i = 0; i < order.size(); ++i) {
        if (!name(i).starts_with("reduce")) continue;
        size_t next = i + 1;
        while (next < order.size() && !name(next).starts_with("reduce")) ++next;
        if (next == order.size() || pass(next) != pass(i)) continue;
        ASSERT_GT(i, 0U) << c.name;
        EXPECT_TRUE(name(i - 1).starts_with("gather")) << c.name << " " << name(i - 1);
        ++checked;
      }
    }
  }
  EXPECT_GT(checked, 50);
}

// Where nothing overlaps, a unit is gathered when the unit before it is done, in both passes.
TEST(LoweringOrder, a_unit_is_gathered_after_the_one_before_it_where_nothing_overlaps) {
  int checked = 0;
  for (PlanCase c : plan_cases()) {
    if (c.plan.shard != Sharding::kZero3 || c.software.pass_overlap) continue;
    c.software.dp_overlap = false;
    const OpGraph graph = c.lower();
    for (size_t p = 0; p < graph.programs.size(); ++p) {
      const Program& program = graph.programs[ProgramId(p)];
      std::optional<OpId> unit_end;
      bool follows_a_gather = false;
      for (size_t i = 0; i < program.ops.size(); ++i) {
        const Op& op = program.ops[i];
        const Work& work = graph.works[op.work];
        const bool gathers = work.name.starts_with("gather");
        if (gathers && unit_end && !follows_a_gather) {
          const auto before = program.dependencies_of(op);
          EXPECT_NE(std::find(before.begin(), before.end(), *unit_end), before.end())
              << c.name << " op " << i;
          ++checked;
        }
        const bool of_a_unit = work.stream != Stream::kHost && work.kind != WorkKind::kReceive &&
                               work.kind != WorkKind::kSend && !gathers &&
                               work.stream != Stream::kDp;
        if (of_a_unit) unit_end = OpId(i);
        follows_a_gather = gathers;
      }
    }
  }
  EXPECT_GT(checked, 50);
}

}  // namespace
}  // namespace herdsim
