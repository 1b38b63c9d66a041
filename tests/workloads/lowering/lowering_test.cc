// Laws of the op graph over the whole table of plans: nothing is lost, nothing is done twice.
#include "workloads/lowering.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "tests/workloads/lowering/plans.h"
#include "workloads/stage_layout.h"

namespace herdsim {
namespace {

struct ComputedFlops {
  double matrices = 0, attention = 0;
};

// Of all ranks.
ComputedFlops computed(const OpGraph& graph) {
  const double ranks_of_program =
      static_cast<double>(graph.grid.ranks()) / static_cast<double>(graph.programs.size());
  ComputedFlops sum;
  for_each_op(graph, [&](ProgramId, OpId, const Op&, const Work& work) {
    for (const Kernel& kernel : work.kernels) {
      const double times = ranks_of_program * kernel.repeats;
      if (const auto* gemm = std::get_if<GemmShape>(&kernel.work)) {
        sum.matrices += gemm->flops().count() * times;
      } else if (const auto* attention = std::get_if<AttentionShape>(&kernel.work)) {
        sum.attention += attention->flops().count() * times;
      }
    }
  });
  return sum;
}

TEST(Lowering, table_holds_every_schedule) {
  std::set<std::string> seen;
  for (const PlanCase& c : plan_cases()) seen.insert(c.training.schedule);
  EXPECT_EQ(seen.size(), schedules().size());
  EXPECT_GT(plan_cases().size(), 500u);
}

int64_t recomputed_layers(const PlanCase& c) {
  int64_t sum = 0;
  const bool twice = c.row().layout == ChunkLayout::kBidirectional;
  for (const StageLayout& stage : layout_stages(c.model, c.plan, c.row())) {
    for (const int64_t layers : stage.layers) sum += std::min(layers, c.training.recompute_layers);
  }
  return twice ? sum / 2 : sum;
}

TEST(Lowering, products_add_up_to_six_flops_a_parameter_and_token) {
  for (const PlanCase& c : plan_cases()) {
    const ModelArchitecture& m = c.model;
    const auto tokens = static_cast<double>(c.training.tokens());
    const auto of = [&](int64_t parameters) { return static_cast<double>(parameters) * tokens; };
    // Where there are more tensor ranks than key heads, heads are computed on several; latents on
    // every tensor rank that has no part of the sequence to itself.
    const int64_t copied_heads = std::max<int64_t>(0, c.plan.tp - m.kv_heads);
    const int64_t copies = 2 * copied_heads * m.head_dim * m.hidden * (m.is_latent() ? 0 : 1);
    const int64_t latents = m.is_latent() && !c.plan.sequence_parallel
                                ? (c.plan.tp - 1) * m.hidden * m.latent_width()
                                : 0;
    double expected = 6 * of(m.active_matrix_parameters() + m.layers * (copies + latents) +
                             m.embedding_parameters());
    if (c.training.recompute == Recompute::kFull) {
      // A second forward pass of each layer, whose last product nobody needs; of shared experts it
      // is made.
      const int64_t last =
          m.is_moe() ? m.experts_per_token * m.hidden * m.expert_width() : m.hidden * m.ffn;
      const int64_t layers = c.training.recompute_layers > 0 ? recomputed_layers(c) : m.layers;
      expected += 2 * of(layers * (m.active_layer_matrix_parameters(m.is_moe()) + copies - last));
    }
    EXPECT_EQ(computed(c.lower()).matrices, expected) << c.name;
  }
}

// Each module adds the products it makes again and nothing else, whatever else is made again.
TEST(Lowering, modules_to_recompute_add_their_own_products) {
  int compared = 0;
  for (const PlanCase& c : plan_cases()) {
    if (c.training.recompute != Recompute::kNone || c.training.schedule != "1f1b") continue;
    const ModelArchitecture& m = c.model;
    const auto tokens = static_cast<double>(c.training.tokens());
    const double plain = computed(c.lower()).matrices;
    const auto added = [&](RecomputeModule module, int64_t layers, int64_t parameters) {
      PlanCase again = c;
      again.training.recompute = Recompute::kSelective;
      again.training.recompute_modules = {module};
      again.software.recompute_stops_early = false;
      EXPECT_NEAR(computed(again.lower()).matrices - plain,
                  2 * static_cast<double>(layers * parameters) * tokens, 1e-9 * plain)
          << c.name << ", module " << static_cast<int>(module);
      ++compared;
    };
    added(RecomputeModule::kNorms, m.layers, 0);
    added(RecomputeModule::kActivation, m.layers, 0);
    added(RecomputeModule::kCoreAttention, m.layers, 0);
    if (m.is_latent()) {
      const int64_t down = m.hidden * m.latent_width(), output = m.attention_width() * m.hidden;
      added(RecomputeModule::kMlaUpProjection, m.layers, m.attention_parameters() - down - output);
    }
    added(RecomputeModule::kMlp, m.dense_layers(), m.ffn_parameters());
    if (!m.is_moe()) continue;
    added(RecomputeModule::kExperts, m.expert_layers(),
          (m.experts_per_token + m.shared_experts) * m.expert_parameters() + m.router_parameters());
    added(RecomputeModule::kSharedExperts, m.expert_layers(),
          m.shared_experts * m.expert_parameters());
  }
  EXPECT_GT(compared, 50);
}

TEST(Lowering, attention_is_the_causal_half_with_its_scores_computed_again) {
  for (const PlanCase& c : plan_cases()) {
    const ModelFlops flops = model_flops(c.model, c.training);
    const auto matrices = static_cast<double>(c.model.active_matrix_parameters() +
                                              c.model.embedding_parameters());
    const double model_attention =
        flops.causal.count() - 6 * matrices * static_cast<double>(c.training.tokens());
    // Of the model: 4 forward and 8 backward. Done: 10 backward, and 4 more where recomputed.
    const double done = c.training.recompute == Recompute::kNone ? 14 : 18;
    EXPECT_EQ(computed(c.lower()).attention * 12, model_attention * done) << c.name;
  }
}

// The figures of the literature count 6 for the embedding table too, though looking a row up is no
// product; without it they are 0.5 % lower.
TEST(Lowering, model_flops_of_llama_3_405b_are_the_published_ones_less_the_lookup) {
  const ModelArchitecture m{.name = "405b",
                            .layers = 126,
                            .hidden = 16384,
                            .ffn = 53248,
                            .heads = 128,
                            .kv_heads = 8,
                            .head_dim = 128,
                            .vocab = 128256};
  const auto lookup = 6 * static_cast<double>(m.embedding_parameters());
  for (const auto& [sequence, causal, full] :
       {std::tuple(8192, 2.54e12, 2.64e12), std::tuple(131072, 4.06e12, 5.68e12)}) {
    const Training training{.sequence_length = sequence, .global_batch = 16};
    const ModelFlops flops = model_flops(m, training);
    const auto tokens = static_cast<double>(training.tokens());
    EXPECT_NEAR(flops.causal.count() / tokens + lookup, causal, 0.005e12) << sequence;
    EXPECT_NEAR(flops.full.count() / tokens + lookup, full, 0.005e12) << sequence;
  }
}

TEST(Lowering, every_send_completes_one_receive_of_its_micro_batch_and_size) {
  for (const PlanCase& c : plan_cases()) {
    const OpGraph graph = c.lower();
    std::set<std::pair<ProgramId, OpId>> completed;
    size_t receives = 0;
    for_each_op(graph, [&](ProgramId program, OpId, const Op& op, const Work& work) {
      if (work.kind == WorkKind::kReceive) ++receives;
      if (work.kind != WorkKind::kSend) return;
      ASSERT_NE(op.peer, program) << c.name;
      ASSERT_LT(op.peer.index(), graph.programs.size()) << c.name;
      ASSERT_LT(op.receive.index(), graph.programs[op.peer].ops.size()) << c.name;
      const Op& receive = graph.programs[op.peer].ops[op.receive.index()];
      const Work& received = graph.works[receive.work];
      ASSERT_EQ(received.kind, WorkKind::kReceive) << c.name;
      EXPECT_EQ(receive.micro_batch, op.micro_batch) << c.name;
      EXPECT_EQ(received.bytes, work.bytes) << c.name;
      EXPECT_EQ(received.name == "receive activation", work.stream == Stream::kSendForward);
      EXPECT_TRUE(completed.emplace(op.peer, op.receive).second) << c.name;
    });
    EXPECT_EQ(completed.size(), receives) << c.name;

    size_t crossings = 0;  // of stage borders by micro-batches, one way
    for (int64_t m = 0; m < c.shape().micro_batches; ++m) {
      for (int64_t chunk = 1; chunk < model_chunks(c.row(), c.shape()); ++chunk) {
        const int64_t from = place_of_chunk(c.row(), c.shape(), m, chunk - 1).stage;
        if (from != place_of_chunk(c.row(), c.shape(), m, chunk).stage) ++crossings;
      }
    }
    EXPECT_EQ(receives, 2 * crossings) << c.name;
  }
}

// Bytes of collectives on the data-parallel stream, of all programs, by the start of their name, of
// experts or of the rest.
int64_t bytes_named(const OpGraph& graph, std::string_view prefix, bool experts) {
  int64_t bytes = 0;
  for_each_op(graph, [&](ProgramId, OpId, const Op&, const Work& work) {
    const bool counts = work.stream == Stream::kDp && work.name.starts_with(prefix) &&
                        work.communicator != Communicator::kReplica &&
                        work.communicator != Communicator::kEnds;
    if (counts && (work.communicator == Communicator::kExpertGradient) == experts) {
      bytes += work.bytes.count();
    }
  });
  return bytes;
}

bool is_tied_on_one_stage(const PlanCase& c) {
  const auto stages = layout_stages(c.model, c.plan, c.row());
  return c.model.tied_embeddings && stages[0].embedding_chunk && stages[0].head_chunk;
}

TEST(Lowering, each_parameter_is_gathered_and_reduced_as_often_as_its_sharding_says) {
  for (const PlanCase& c : plan_cases()) {
    const OpGraph graph = c.lower();
    const WorkloadSpec spec = c.spec();
    const LayerParameters layer = layer_parameters(c.model, c.plan, c.model.is_moe());
    const LayerParameters first = layer_parameters(c.model, c.plan, false);
    const int64_t ends = (is_tied_on_one_stage(c) ? 1 : 2) * spec.embedding_parameters();
    const int64_t without = c.model.is_moe() ? c.model.first_dense_layers : c.model.layers;
    const int64_t with = c.model.layers - without;
    const bool twice = c.row().layout == ChunkLayout::kBidirectional;
    const bool zero3 = c.plan.shard == Sharding::kZero3;
    const bool keeps_no_gradients = zero3 || c.plan.shard == Sharding::kZero2;
    for (const bool experts : {false, true}) {
      const int64_t parameters =
          experts ? with * layer.experts
                  : with * layer.dense() + without * first.total() + ends + c.model.hidden;
      const int64_t held = parameters * (twice ? 2 : 1);
      // Of the copies of a chunk, each micro-batch meets one.
      const int64_t met = parameters * c.shape().micro_batches;
      const bool spread = twice || (experts ? c.plan.expert_copies() : c.plan.shards()) > 1;
      const int64_t times = c.plan.shard == Sharding::kNone ? 0 : (zero3 ? 2 : 1);
      const int64_t met_or_held = zero3 ? met : held;
      // In fp8 a byte of what lies in layers.
      const int64_t in_layers = experts ? parameters : parameters - ends - c.model.hidden;
      const int64_t saved = c.software.parameter_gather_fp8 && parameters > 0
                                ? met_or_held / parameters * in_layers
                                : 0;
      const int64_t reduced = keeps_no_gradients ? met : held;
      EXPECT_EQ(bytes_named(graph, "gather ", experts), spread ? times * (2 * met_or_held - saved) : 0)
          << c.name;
      EXPECT_EQ(bytes_named(graph, "reduce ", experts), spread ? reduced * 4 : 0) << c.name;
    }
  }
}

// Two stages that hold the same chunks reduce their gradients together, in the same order.
TEST(Lowering, both_copies_of_a_chunk_are_reduced_with_each_other) {
  int mirrored = 0;
  for (const PlanCase& c : plan_cases()) {
    if (c.row().layout != ChunkLayout::kBidirectional) continue;
    ++mirrored;
    const OpGraph graph = c.lower();
    EXPECT_EQ(graph.grid.group_size(Communicator::kGradient),
              static_cast<size_t>(2 * c.plan.dp * c.plan.cp));
    const auto order = [&](size_t stage) {
      std::vector<WorkId> works;
      const Program& program = graph.programs[ProgramId(stage)];
      for (const OpId op : program.stream_order[static_cast<size_t>(Stream::kDp)]) {
        works.push_back(program.ops[op.index()].work);
      }
      return works;
    };
    const auto stages = static_cast<size_t>(c.plan.pp);
    for (size_t s = 0; s < stages / 2; ++s) EXPECT_EQ(order(s), order(stages - 1 - s)) << c.name;
  }
  EXPECT_GT(mirrored, 10);
}

TEST(Lowering, copies_of_a_tied_embedding_meet_once_where_they_are_on_two_stages) {
  for (const PlanCase& c : plan_cases()) {
    std::set<ProgramId> meet;
    for_each_op(c.lower(), [&](ProgramId program, OpId, const Op&, const Work& work) {
      if (work.kind != WorkKind::kCollective || work.communicator != Communicator::kEnds) return;
      EXPECT_TRUE(meet.insert(program).second) << c.name;
      EXPECT_EQ(work.bytes, Bytes(4 * c.spec().embedding_parameters())) << c.name;
    });
    const bool apart = c.model.tied_embeddings && c.plan.pp > 1 && !is_tied_on_one_stage(c);
    const std::set<ProgramId> ends = {ProgramId(0), ProgramId(static_cast<size_t>(c.plan.pp - 1))};
    EXPECT_EQ(meet, apart ? ends : std::set<ProgramId>{}) << c.name;
  }
}

// Where the stack reduces them one by one: each layer's, and the last one.
TEST(Lowering, every_norm_that_tensor_ranks_share_is_reduced_once) {
  int compared = 0;
  for (PlanCase c : plan_cases()) {
    c.software.norm_reductions_per_layer = 2;
    int64_t norms = 0;
    for_each_op(c.lower(), [&](ProgramId, OpId, const Op&, const Work& work) {
      if (work.name != "reduce norm") return;
      ++norms;
      EXPECT_EQ(work.communicator, Communicator::kTensor) << c.name;
      EXPECT_EQ(work.bytes, Bytes(4 * c.model.hidden)) << c.name;
    });
    const int64_t copies = c.row().layout == ChunkLayout::kBidirectional ? 2 : 1;
    const bool shared = c.plan.tp > 1 && c.plan.sequence_parallel;
    EXPECT_EQ(norms, shared ? copies * (2 * c.model.layers + 1) : 0) << c.name;
    compared += shared ? 1 : 0;
  }
  EXPECT_GT(compared, 10);
}

// A host that waits for its kernels launches as often as one that runs ahead, but on the GPU's
// time: forward kernels once more where the backward pass makes them again.
TEST(Lowering, blocking_launches_take_the_time_of_the_gpu) {
  int compared = 0;
  for (PlanCase c : plan_cases()) {
    c.software.host_microseconds_per_layer_forward = 100;
    c.software.host_microseconds_per_layer_backward = 200;
    c.software.host_microseconds_per_transfer = c.software.host_microseconds_per_expert_layer = 0;
    c.software.host_microseconds_per_sharded_layer = 0;
    const auto launches = [&](WorkKind kind, std::set<double>& microseconds) {
      int count = 0;
      for_each_op(c.lower(), [&](ProgramId, OpId, const Op&, const Work& work) {
        if (work.name != "launch forward" && work.name != "launch backward") return;
        ++count;
        EXPECT_EQ(work.kind, kind) << c.name;
        microseconds.insert(std::round(work.host_floor.seconds() * 1e6));
      });
      return count;
    };
    std::set<double> ahead, waiting;
    const int before = launches(WorkKind::kHost, ahead);
    c.software.launch_blocking = true;
    EXPECT_EQ(launches(WorkKind::kCompute, waiting), before) << c.name;
    EXPECT_EQ(ahead, (std::set<double>{100, 200})) << c.name;
    waiting.erase(300);
    EXPECT_LE(waiting.size(), 2U) << c.name;
    EXPECT_EQ(waiting.count(100), 1U) << c.name;
    compared += before;
  }
  EXPECT_GT(compared, 100);
}

// As many copies of a token as it visits experts leave a rank in each all-to-all, two a pass.
TEST(Lowering, tokens_go_to_experts_and_back_in_every_pass) {
  int compared = 0;
  for (const PlanCase& c : plan_cases()) {
    if (c.plan.ep == 1) continue;
    TypedVector<WorkId, Work> works;
    const PassTemplates layer =
        layer_templates(c.spec(), works, {.recomputes = false, .has_experts = true});
    for (const auto part : {&PassTemplates::forward, &PassTemplates::backward}) {
      int times = 0;
      for (const TemplateStep& step : layer.*part) {
        const Work& work = works[step.work];
        if (work.communicator != Communicator::kExpert || work.kind != WorkKind::kCollective) {
          continue;
        }
        // How many tokens go to each expert, before the first of them leaves.
        if (work.collective == CollectiveKind::kAllGather) {
          EXPECT_GT(c.software.host_microseconds_for_expert_counts, 0) << c.name;
          EXPECT_EQ(times, 0) << c.name;
          EXPECT_EQ(work.bytes.count(), c.plan.ep * c.model.experts * 8) << c.name;
          continue;
        }
        ++times;
        EXPECT_EQ(work.collective, CollectiveKind::kAllToAll);
        EXPECT_EQ(work.routing.experts, c.software.expert_dispatch_once ? c.model.experts : 0);
        EXPECT_EQ(work.bytes.count(),
                  2 * c.spec().local_tokens() * c.model.experts_per_token * c.model.hidden)
            << c.name;
      }
      EXPECT_EQ(times, 2) << c.name;
      ++compared;
    }
  }
  EXPECT_GT(compared, 20);
}

TEST(Lowering, pairs_of_passes_hold_the_ops_of_both) {
  for (const PlanCase& c : plan_cases()) {
    if (!c.software.pass_overlap) continue;
    PlanCase apart = c;
    apart.software.pass_overlap = false;
    const OpGraph together = c.lower(), one_by_one = apart.lower();
    for (size_t p = 0; p < together.programs.size(); ++p) {
      const auto works = [&](const OpGraph& graph) {
        std::multiset<std::tuple<WorkId, int32_t, int32_t>> all;
        for (const Op& op : graph.programs[ProgramId(p)].ops) {
          all.insert({op.work, op.micro_batch, op.chunk});
        }
        return all;
      };
      EXPECT_EQ(works(together), works(one_by_one)) << c.name;
    }
  }
}

TEST(Lowering, the_whole_job_meets_once_in_the_gradient_norm) {
  for (const PlanCase& c : plan_cases()) {
    std::map<ProgramId, int> meetings;
    for_each_op(c.lower(), [&](ProgramId program, OpId, const Op&, const Work& work) {
      if (work.kind == WorkKind::kCollective && work.communicator == Communicator::kWorld) {
        ++meetings[program];
      }
    });
    EXPECT_EQ(static_cast<int64_t>(meetings.size()), c.plan.pp) << c.name;
    for (const auto& [program, count] : meetings) EXPECT_EQ(count, 1) << c.name;
  }
}

}  // namespace
}  // namespace herdsim
