#include "tools/study/step_bound.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "sim/costing/cost_pass.h"
#include "sim/models/compute_time.h"
#include "tools/simulation/simulate_step.h"
#include "tools/study/least_memory.h"
#include "tools/study/pass_timeline.h"
#include "tools/study/transfer_bounds.h"
#include "tools/study/unit_times.h"
#include "workloads/layer_work.h"
#include "workloads/lowering.h"
#include "workloads/stage_layout.h"

namespace herdsim {
namespace {

using Ticks = int64_t;  // nanoseconds

// Of the embedding, a layer and the head.
struct PassCosts {
  std::array<UnitTimes, kUnits> forward, backward, backward_input, backward_weight;
  std::array<Ticks, kUnits> launch_forward{}, launch_backward{};
};

struct DataParallelCosts {
  std::array<BucketTransfer, kUnits> gather{}, reduce_scatter{}, all_reduce{};
};

// Of pp - 1 chunks in a row, and of the last stage, no fewer (stage_layout.h).
struct LeastLayers {
  Ticks ahead = 0, last_stage = 0;
};
LeastLayers least_layers(int64_t layers, int64_t stages, int64_t chunks_a_stage) {
  const int64_t chunks = stages * chunks_a_stage;
  const bool short_ends = layers % chunks != 0 && (layers + 2) % chunks == 0;
  const int64_t each = (short_ends ? layers + 2 : layers) / chunks;
  return {(stages - 1) * each - (short_ends ? 1 : 0),
          chunks_a_stage * each - (short_ends ? 1 : 0)};
}

Ticks scaled(Ticks time, double factor) {
  return static_cast<Ticks>(std::ceil(static_cast<double>(time) * factor));
}

Ticks microseconds_rounded_up(double time) { return seconds_rounded_up(time * 1e-6).nanoseconds(); }

}  // namespace

class StepBounds::Tables {
 public:
  Tables(const Scenario& base, const std::vector<PlanCandidate>& candidates)
      : base_(base),
        transfers_(base),
        slowest_(1 + base.software.gpu_speed_sigma * expected_slowest_sigmas(base.gpus)),
        host_(microseconds_rounded_up(1e3 * base.software.host_milliseconds_per_step) +
              scaled(microseconds_rounded_up(1e3 * base.software.step_jitter_milliseconds),
                     expected_slowest_sigmas(base.gpus))) {
    for (const PlanCandidate& c : candidates) {
      if (!passes_.contains(pass_key(c))) passes_.emplace(pass_key(c), pass_costs(c));
      if (!data_.contains(data_key(c))) data_.emplace(data_key(c), data_costs(c));
    }
  }

  Ticks quick(const PlanCandidate& c) const {
    const PassCosts& pass = passes_.at(pass_key(c));
    const auto layer = static_cast<size_t>(Unit::kLayer);
    const Ticks layers = most_layers(c);
    const Ticks passes = micro_batches(c);
    // Of one layer and micro-batch, on the stage that has most of them. Where two chunks share a
    // stage, each meets half of the micro-batches, and only the mean is certain.
    const Ticks layer_passes = c.schedule->layout == ChunkLayout::kBidirectional
                                   ? passes * base_.model.layers / c.plan.pp
                                   : passes * layers;
    // Where only some layers recompute, none is counted here.
    const auto recomputing = static_cast<size_t>(c.recompute != Recompute::kNone &&
                                                         base_.training.recompute_fraction >= 1 &&
                                                         base_.training.recompute_layers == 0
                                                     ? Unit::kRecomputedLayer
                                                     : Unit::kLayer);
    const auto backward = [&](size_t unit) {
      return c.schedule->splits_backward
                 ? pass.backward_input[unit].occupied + pass.backward_weight[unit].occupied
                 : pass.backward[unit].occupied;
    };
    const Ticks each = pass.forward[layer].occupied + backward(recomputing);
    const Ticks compute = layer_passes * each;
    // The last stage: it waits for its first input, works, and after its last backward pass the
    // stages before it run theirs.
    Ticks filled = 0;
    const ChunkLayout layout = c.schedule->layout;
    if (layout != ChunkLayout::kBidirectional && c.plan.pp > 1) {
      const LeastLayers least =
          least_layers(base_.model.layers, c.plan.pp,
                       chunks_per_stage(*c.schedule, schedule_shape(c.plan, base_.training)));
      filled = least.ahead * pass.forward[layer].whole + passes * least.last_stage * each;
      const auto head = static_cast<size_t>(Unit::kHead);
      if (layout == ChunkLayout::kLoop)
        filled += passes * (pass.forward[head].occupied + backward(head));
      if (!c.schedule->splits_backward) {
        // What the head defers, it makes while they do.
        const Ticks deferred = deferred_heads(c) * pass.backward_weight[head].occupied;
        const Ticks behind = least.ahead * pass.backward[recomputing].whole;
        filled += std::max<Ticks>(0, behind - deferred);
      }
    }
    Ticks carried = 0;
    if (c.plan.dp * c.plan.cp > 1 && !has_copies(c)) {
      const DataParallelCosts& data = data_.at(data_key(c));
      const Sharding shard = c.plan.shard;
      const Ticks gathers = shard == Sharding::kNone    ? 0
                            : shard == Sharding::kZero3 ? 2 * layer_passes
                                                        : layers;
      const Ticks reductions = reduces_each_pass(shard) ? layer_passes : layers;
      const BucketTransfer& reduce =
          shard == Sharding::kNone ? data.all_reduce[layer] : data.reduce_scatter[layer];
      carried = gathers * data.gather[layer].share.time + reductions * reduce.share.time;
    }
    return std::max({compute, carried, filled}) +
           optimizer(c, layers * layer_parameters(c), layers) + host_;
  }

  bool reduces_each_pass(Sharding shard) const {
    const bool by_unit = shard == Sharding::kZero2 || shard == Sharding::kZero3;
    return by_unit && !base_.software.dp_reduces_once;
  }

  Ticks passes(const PlanCandidate& c) const {
    const Bare& bare = without_sharding(c);
    return bare.timeline + end_of_step(c, bare.stages);
  }

  Ticks timeline(const PlanCandidate& c) const {
    if (c.plan.dp * c.plan.cp == 1 || has_copies(c)) return passes(c);
    TimelineQuestion q = bare_question(c);
    const DataParallelCosts& data = data_.at(data_key(c));
    const Sharding shard = c.plan.shard;
    q.reduce = shard == Sharding::kNone ? data.all_reduce : data.reduce_scatter;
    if (shard != Sharding::kNone) q.gather = data.gather;
    q.gathers_each_pass = shard == Sharding::kZero3;
    q.reduces_each_pass = reduces_each_pass(shard);
    q.overlap = base_.software.dp_overlap;
    return run_timeline(q) + end_of_step(c, without_sharding(c).stages);
  }

 private:
  // (tp, cp, pp, chunks a stage)
  using DataKey = std::tuple<int64_t, int64_t, int64_t, int64_t>;
  static DataKey data_key(const PlanCandidate& c) {
    return {c.plan.tp, c.plan.cp, c.plan.pp, c.plan.virtual_stages};
  }
  using PassKey = std::tuple<int64_t, int64_t, int64_t, Recompute>;
  // All but the sharding, and what that says of heads.
  using BareKey = std::tuple<PassKey, int64_t, int64_t, const ScheduleRow*, int64_t>;

  static PassKey pass_key(const PlanCandidate& c) {
    return {c.plan.tp, c.plan.cp, c.plan.micro_batch, c.recompute};
  }
  // Two copies of a chunk, which reduce together, over a group that no table here knows.
  static bool has_copies(const PlanCandidate& c) {
    return c.schedule->layout == ChunkLayout::kBidirectional;
  }
  BareKey bare_key(const PlanCandidate& c) const {
    return {pass_key(c), c.plan.pp, c.plan.virtual_stages, c.schedule, deferred_heads(c)};
  }

  struct StageSize {
    int64_t parameters = 0, layers = 0;
    friend bool operator==(const StageSize&, const StageSize&) = default;
  };
  // What is found once for plans that differ in sharding alone.
  struct Bare {
    Ticks timeline = 0;                  // without gathers and reductions
    std::vector<StageSize> stages = {};  // distinct ones
  };

  const Bare& without_sharding(const PlanCandidate& c) const {
    {
      const std::lock_guard lock(bare_mutex_);
      const auto known = bare_.find(bare_key(c));
      if (known != bare_.end()) return known->second;
    }
    const TimelineQuestion q = bare_question(c);
    Bare bare{.timeline = run_timeline(q)};
    for (int64_t stage = 0; stage < c.plan.pp; ++stage) {
      const StageSize size = stage_size(c, q, stage);
      if (std::find(bare.stages.begin(), bare.stages.end(), size) == bare.stages.end())
        bare.stages.push_back(size);
    }
    const std::lock_guard lock(bare_mutex_);
    return bare_.emplace(bare_key(c), std::move(bare)).first->second;
  }

  TimelineQuestion bare_question(const PlanCandidate& c) const {
    const PassCosts& pass = passes_.at(pass_key(c));
    TimelineQuestion q{.row = *c.schedule, .shape = schedule_shape(c.plan, base_.training)};
    q.layers = chunk_layers(c, q.shape);
    if (c.recompute != Recompute::kNone && base_.training.recompute_layers == 0) {
      q.recompute_fraction = base_.training.recompute_fraction;
    }
    q.forward = pass.forward;
    q.backward = pass.backward;
    q.backward_input = pass.backward_input;
    q.backward_weight = pass.backward_weight;
    q.launch_forward = pass.launch_forward;
    q.launch_backward = pass.launch_backward;
    q.launches_wait = !base_.software.p2p_async;
    q.pairs = base_.software.pass_overlap;
    q.deferred_heads = deferred_heads(c);
    q.next_stage = message(c, 1);
    q.around = message(c, c.plan.pp - 1);
    return q;
  }

  // What follows the last reduction.
  Ticks end_of_step(const PlanCandidate& c, const std::vector<StageSize>& stages) const {
    Ticks update = 0;
    for (const StageSize& stage : stages)
      update = std::max(update, optimizer(c, stage.parameters, stage.layers));
    return norm_ + update + host_;
  }

  int64_t micro_batches(const PlanCandidate& c) const {
    return base_.training.global_batch / (c.plan.dp * c.plan.micro_batch);
  }
  int64_t deferred_heads(const PlanCandidate& c) const {
    return deferred_head_gradients(base_.model, base_.software, c.plan, *c.schedule,
                                   micro_batches(c));
  }
  int64_t most_layers(const PlanCandidate& c) const {
    return herdsim::most_layers(base_.model, c.plan);
  }
  // Of the kind of layer that has fewer.
  int64_t layer_parameters(const PlanCandidate& c) const {
    return least_layer_parameters(base_.model, c.plan);
  }
  WorkloadSpec workload(const PlanCandidate& c) const {
    return {base_.model, c.plan, base_.training, base_.software};
  }
  static RankGrid grid_of(const ParallelPlan& p) { return p.grid(); }

  // Of the host, for one pass of a layer.
  Ticks launch(double microseconds, const WorkTemplate& steps,
               const TypedVector<WorkId, Work>& works) const {
    const auto transfers = std::count_if(steps.begin(), steps.end(), [&](const TemplateStep& step) {
      return works[step.work].stream == Stream::kTp;
    });
    return microseconds_rounded_up(microseconds +
                                   static_cast<double>(transfers) *
                                       base_.software.host_microseconds_per_transfer);
  }

  PassCosts pass_costs(const PlanCandidate& c) {
    Training training = base_.training;
    training.recompute = c.recompute;
    const WorkloadSpec spec{base_.model, c.plan, training, base_.software};
    OpGraph graph;
    graph.grid = grid_of(c.plan);
    const bool experts = base_.model.is_moe(), recomputes = c.recompute != Recompute::kNone;
    const std::array<PassTemplates, kUnits> templates = {
        embedding_templates(spec, graph.works),
        layer_templates(spec, graph.works, {.recomputes = false, .has_experts = experts}),
        layer_templates(spec, graph.works, {.recomputes = recomputes, .has_experts = experts}),
        head_templates(spec, graph.works)};
    // Where some layers have no experts, every layer counts as the cheaper kind.
    const bool both = experts && base_.model.dense_layers() > 0;
    std::array<PassTemplates, kUnits> others;
    if (both) {
      others[1] = layer_templates(spec, graph.works, {.recomputes = false, .has_experts = false});
      others[2] =
          layer_templates(spec, graph.works, {.recomputes = recomputes, .has_experts = false});
    }
    const CostedGraph costs = cost_graph(graph, base_.profile, base_.software);
    LeastCosts cost;
    for (size_t w = 0; w < graph.works.size(); ++w) {
      const Work& work = graph.works[WorkId(w)];
      if (work.kind == WorkKind::kCompute) {
        cost.push_back({costs.works[WorkId(w)].total.nanoseconds(), 0});
      } else if (base_.software.pass_overlap) {
        // In a pair of passes the kernels of one may hide all that the other waits for.
        cost.push_back({});
      } else if (work.kind == WorkKind::kHost) {
        cost.push_back({work.host_floor.nanoseconds(), 0});
      } else {
        cost.push_back(transfers_.collective(work.collective, work.bytes, work.communicator,
                                      transfers_.of_groups(graph.grid, work.communicator), work.routing));
      }
    }
    PassCosts pass;
    for (size_t u = 0; u < kUnits; ++u) {
      const auto times = [&](WorkTemplate PassTemplates::*part) {
        const UnitTimes of_unit = unit_times(templates[u].*part, cost, graph.works);
        const bool either = both && (u == 1 || u == 2);
        return either ? least(of_unit, unit_times(others[u].*part, cost, graph.works)) : of_unit;
      };
      pass.forward[u] = times(&PassTemplates::forward);
      pass.backward[u] = times(&PassTemplates::backward);
      pass.backward_input[u] = times(&PassTemplates::backward_input);
      pass.backward_weight[u] = times(&PassTemplates::backward_weight);
      const auto unit = static_cast<Unit>(u);
      if (unit != Unit::kLayer && unit != Unit::kRecomputedLayer) continue;
      const SoftwareStack& stack = base_.software;
      pass.launch_forward[u] =
          launch(stack.host_microseconds_per_layer_forward, templates[u].forward, graph.works);
      pass.launch_backward[u] =
          launch(stack.host_microseconds_per_layer_backward, templates[u].backward, graph.works);
    }
    return pass;
  }

  DataParallelCosts data_costs(const PlanCandidate& c) {
    const WorkloadSpec spec = workload(c);
    const RankGrid grid = grid_of(c.plan);
    const Communicator sharing =
        c.plan.is_hybrid() ? Communicator::kShard : Communicator::kGradient;
    const auto& shapes = transfers_.of_groups(grid, sharing);
    static const std::vector<GroupShape> kNone;
    const auto& of_experts =
        base_.model.is_moe() ? transfers_.of_groups(grid, Communicator::kExpertGradient) : kNone;
    // A layer without experts, where the first ones have none, has at least what this bound counts of one with them.
    const LayerParameters layer =
        herdsim::layer_parameters(base_.model, c.plan, base_.model.is_moe());
    const bool some_dense = base_.model.is_moe() && base_.model.dense_layers() > 0;
    const int64_t dense =
        some_dense
            ? std::min(layer.dense(), herdsim::layer_parameters(base_.model, c.plan, false).dense())
            : layer.dense();
    const int64_t experts = some_dense ? 0 : layer.experts;
    const std::array<int64_t, kUnits> parameters = {
        spec.table_parameters(), dense, dense,
        (base_.model.tied_embeddings ? 0 : spec.embedding_parameters()) + base_.model.hidden};
    // With others in a bucket a unit takes its share, at the most of all that a chunk has.
    const SoftwareStack& software = base_.software;
    const bool fills_buckets = software.dp_bucket_parameters > 0 ||
                               software.dp_bucket_parameters_per_rank > 0 ||
                               software.dp_bucket_whole_chunks;
    const auto least_of = [&](CollectiveKind kind, Bytes bytes, Bytes most, Communicator group,
                              const std::vector<GroupShape>& of_group) {
      const LeastTransfer alone = transfers_.collective(kind, bytes, group, of_group);
      if (!fills_buckets || most <= bytes) return BucketTransfer{alone, alone.time};
      const double share = static_cast<double>(bytes.count()) / static_cast<double>(most.count());
      const LeastTransfer all = transfers_.collective(kind, most, group, of_group);
      const auto part = [&](Ticks of_unit, Ticks of_all) {
        return std::min(of_unit, static_cast<Ticks>(static_cast<double>(of_all) * share));
      };
      return BucketTransfer{{part(alone.time, all.time), part(alone.taken, all.taken)}, alone.time};
    };
    const int64_t chunks = c.plan.pp * c.plan.virtual_stages;
    const int64_t layers = (base_.model.layers + chunks - 1) / chunks + 1;  // the ends may have fewer
    const int64_t dense_of_chunk =
        layers * dense + (chunks == 1 ? parameters[0] + parameters[3]
                                      : std::max(parameters[0], parameters[3]));
    const auto time = [&](CollectiveKind kind, size_t unit, DataType type) {
      const auto bytes = [&](int64_t count) { return Bytes(count * bytes_per_element(type)); };
      const bool routed = (unit == 1 || unit == 2) && experts > 0;
      const BucketTransfer shared =
          least_of(kind, bytes(parameters[unit]), bytes(dense_of_chunk), sharing, shapes);
      if (!routed) return shared;
      return shared + least_of(kind, bytes(experts), bytes(layers * experts),
                               Communicator::kExpertGradient, of_experts);
    };
    DataParallelCosts costs;
    for (size_t u = 0; u < kUnits; ++u) {
      costs.gather[u] = time(CollectiveKind::kAllGather, u, software.parameter_gather_type);
      costs.reduce_scatter[u] =
          time(CollectiveKind::kReduceScatter, u, software.gradient_reduce_type);
      costs.all_reduce[u] = time(CollectiveKind::kAllReduce, u, software.gradient_reduce_type);
    }
    if (norm_ == 0) {
      norm_ = transfers_.collective(CollectiveKind::kAllReduce, Bytes(4), Communicator::kWorld,
                             transfers_.of_groups(grid, Communicator::kWorld))
                  .time;
    }
    if (c.plan.pp > 1) {
      for (const int64_t stages : {int64_t{1}, c.plan.pp - 1}) {
        const int64_t apart = message_stride(c, stages);
        pairs_[apart] = &transfers_.of_pairs(apart);
      }
    }
    return costs;
  }

  // Ranks between those of two stages so far apart.
  static int64_t message_stride(const PlanCandidate& c, int64_t stages) {
    return static_cast<int64_t>(grid_of(c.plan).with(RankId(0), Axis::kPp, 1).index()) * stages;
  }

  LeastTransfer message(const PlanCandidate& c, int64_t stages) const {
    if (c.plan.pp == 1) return {};
    return transfers_.message(workload(c).stage_message(), *pairs_.at(message_stride(c, stages)));
  }

  Ticks optimizer(const PlanCandidate& c, int64_t parameters, int64_t layers) const {
    // The most ranks that may share: all data-parallel ones, of both copies where a schedule holds two.
    const int64_t copies = c.schedule->layout == ChunkLayout::kBidirectional ? 2 : 1;
    const int64_t shards = c.plan.shard == Sharding::kNone ? 1 : c.plan.dp * c.plan.cp * copies;
    const double saved =
        Training{}.optimizer_state_bytes() - base_.training.optimizer_state_bytes();
    const double moved = static_cast<double>(parameters) / static_cast<double>(shards) *
                         (base_.software.optimizer_bytes - 2 * saved);
    const MemoryTraffic traffic{Bytes(static_cast<int64_t>(moved)), StreamClass::kOptimizer};
    return std::max(scaled(stream_cost(traffic, base_.profile).time.nanoseconds(), slowest_),
                    microseconds_rounded_up(static_cast<double>(layers) *
                                            base_.software.host_microseconds_per_layer_optimizer));
  }

  std::vector<int64_t> chunk_layers(const PlanCandidate& c, const ScheduleShape& shape) const {
    const auto layouts = layout_stages(base_.model, c.plan, *c.schedule);
    std::vector<int64_t> layers;
    for (int64_t chunk = 0; chunk < model_chunks(*c.schedule, shape); ++chunk) {
      const ChunkPlace place = place_of_chunk(*c.schedule, shape, 0, chunk);
      layers.push_back(
          layouts[static_cast<size_t>(place.stage)].layers[static_cast<size_t>(place.chunk)]);
    }
    return layers;
  }

  StageSize stage_size(const PlanCandidate& c, const TimelineQuestion& q, int64_t stage) const {
    StageSize size;
    for (int64_t local = 0; local < chunks_per_stage(q.row, q.shape); ++local) {
      const auto chunk = static_cast<size_t>(model_chunk_at(q.row, q.shape, {stage, local}));
      size.layers += q.layers[chunk];
      if (chunk == 0) size.parameters += workload(c).table_parameters();
      if (chunk + 1 != q.layers.size()) continue;
      size.parameters += base_.model.hidden;
      if (!base_.model.tied_embeddings) size.parameters += workload(c).embedding_parameters();
    }
    size.parameters += size.layers * layer_parameters(c);
    return size;
  }

  const Scenario& base_;
  TransferBounds transfers_;
  const double slowest_;  // time of the slowest GPU over the nominal
  const Ticks host_;      // of a step, which nothing hides
  std::map<PassKey, PassCosts> passes_;
  std::map<DataKey, DataParallelCosts> data_;
  std::map<int64_t, const TransferBounds::Shapes*> pairs_;  // by distance in ranks
  Ticks norm_ = 0;
  mutable std::mutex bare_mutex_;
  mutable std::map<BareKey, Bare> bare_;
};

StepBounds::StepBounds(const Scenario& base, const std::vector<PlanCandidate>& candidates)
    : tables_(std::make_unique<Tables>(base, candidates)) {}
StepBounds::~StepBounds() = default;

Duration StepBounds::quick(const PlanCandidate& c) const { return nanoseconds(tables_->quick(c)); }
Duration StepBounds::passes(const PlanCandidate& c) const {
  return nanoseconds(tables_->passes(c));
}
Duration StepBounds::timeline(const PlanCandidate& c) const {
  return nanoseconds(tables_->timeline(c));
}

}  // namespace herdsim
