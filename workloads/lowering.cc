#include "workloads/lowering.h"

#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "sim/base/check.h"

namespace herdsim {
namespace {

// One layer, or the embedding or head: what is gathered and reduced as a whole over the data-parallel ranks.
enum class UnitKind : uint8_t { kEmbedding, kLayer, kRecomputedLayer, kHead };
constexpr size_t kUnitKinds = 4;

struct ChunkUnits {
  std::vector<UnitKind> units;  // in forward order
};

// The host's work to launch one pass of a unit; none where it takes no time.
struct HostWork {
  std::optional<WorkId> forward, backward;
};

// The pieces of work that all programs share.
struct SharedWork {
  std::array<PassTemplates, kUnitKinds> passes;
  std::array<WorkId, kUnitKinds> gather, reduce;
  WorkId send_forward, send_backward, receive_forward, receive_backward;
  WorkId gradient_norm, host;
  std::array<HostWork, kUnitKinds> launch;
};

int64_t unit_parameters(const WorkloadSpec& spec, UnitKind kind) {
  switch (kind) {
    case UnitKind::kEmbedding:
      return spec.embedding_parameters();
    case UnitKind::kLayer:
    case UnitKind::kRecomputedLayer:
      return spec.layer_parameters();
    case UnitKind::kHead:
      return spec.embedding_parameters() + spec.model.hidden;
  }
  return 0;
}

Work data_parallel_work(std::string name, CollectiveKind kind, Bytes bytes) {
  Work work;
  work.kind = WorkKind::kCollective;
  work.stream = Stream::kDp;
  work.name = std::move(name);
  work.exposed_as = TimeTerm::kExposedDp;
  work.communicator = Communicator::kGradient;
  work.collective = kind;
  work.bytes = bytes;
  return work;
}

Work transfer_work(WorkKind kind, Stream stream, std::string name, Bytes bytes) {
  Work work;
  work.kind = kind;
  work.stream = stream;
  work.name = std::move(name);
  work.exposed_as = TimeTerm::kExposedPp;
  work.bytes = bytes;
  return work;
}

std::optional<WorkId> host_work(std::string name, double microseconds,
                                TypedVector<WorkId, Work>& works) {
  if (microseconds <= 0) return std::nullopt;
  Work work;
  work.kind = WorkKind::kHost;
  work.stream = Stream::kHost;
  work.name = std::move(name);
  work.host_floor = seconds_rounded_up(microseconds * 1e-6);
  return works.push_back(std::move(work));
}

// Of one layer: its kernels, and each of its tensor-parallel transfers. A split backward pass is launched with its first
// half.
HostWork launch_work(const WorkloadSpec& spec, const PassTemplates& passes,
                     TypedVector<WorkId, Work>& works) {
  const SoftwareStack& software = spec.software;
  const auto transfers = [&](const WorkTemplate& steps) {
    double count = 0;
    for (const TemplateStep& step : steps) {
      if (works[step.work].stream == Stream::kTp) ++count;
    }
    return count * software.host_microseconds_per_transfer;
  };
  const double forward = software.host_microseconds_per_layer_forward + transfers(passes.forward);
  const double backward =
      software.host_microseconds_per_layer_backward + transfers(passes.backward);
  return {host_work("launch forward", forward, works), host_work("launch backward", backward, works)};
}

SharedWork shared_work(const WorkloadSpec& spec, TypedVector<WorkId, Work>& works) {
  SharedWork shared;
  const bool recomputes = spec.training.recompute != Recompute::kNone;
  shared.passes[0] = embedding_templates(spec, works);
  shared.passes[1] = layer_templates(spec, works, false);
  shared.passes[2] = recomputes ? layer_templates(spec, works) : shared.passes[1];
  shared.passes[3] = head_templates(spec, works);
  constexpr std::array<std::string_view, kUnitKinds> kNames = {"embedding", "layer", "layer",
                                                               "head"};
  for (const UnitKind unit : {UnitKind::kLayer, UnitKind::kRecomputedLayer}) {
    shared.launch[static_cast<size_t>(unit)] =
        launch_work(spec, shared.passes[static_cast<size_t>(unit)], works);
  }
  const bool replicas = spec.plan.shard == Sharding::kNone;
  for (size_t u = 0; u < kUnitKinds; ++u) {
    const int64_t parameters = unit_parameters(spec, static_cast<UnitKind>(u));
    const std::string name(kNames[u]);
    shared.gather[u] = works.push_back(data_parallel_work(
        "gather " + name, CollectiveKind::kAllGather,
        Bytes(parameters * bytes_per_element(spec.software.parameter_gather_type))));
    shared.reduce[u] = works.push_back(data_parallel_work(
        "reduce " + name, replicas ? CollectiveKind::kAllReduce : CollectiveKind::kReduceScatter,
        Bytes(parameters * bytes_per_element(spec.software.gradient_reduce_type))));
  }
  const Bytes message = spec.stage_message();
  shared.send_forward = works.push_back(
      transfer_work(WorkKind::kSend, Stream::kSendForward, "send activation", message));
  shared.send_backward = works.push_back(
      transfer_work(WorkKind::kSend, Stream::kSendBackward, "send gradient", message));
  shared.receive_forward = works.push_back(
      transfer_work(WorkKind::kReceive, Stream::kReceive, "receive activation", message));
  shared.receive_backward = works.push_back(
      transfer_work(WorkKind::kReceive, Stream::kReceive, "receive gradient", message));

  Work norm = data_parallel_work("gradient norm", CollectiveKind::kAllReduce, Bytes(4));
  norm.communicator = Communicator::kWorld;
  shared.gradient_norm = works.push_back(std::move(norm));

  Work host;
  host.name = "host";
  host.host_floor = seconds_rounded_up(spec.software.host_milliseconds_per_step * 1e-3);
  host.jitter = seconds_rounded_up(spec.software.step_jitter_milliseconds * 1e-3);
  shared.host = works.push_back(std::move(host));
  return shared;
}

// What the passes of one direction start from, indexed by (model chunk, micro-batch): as a rule the op that receives
// the message, which its sender looks up when both ends are known.
class MessageTable {
 public:
  MessageTable(int64_t chunks, int64_t micro_batches)
      : micro_batches_(micro_batches), receives_(static_cast<size_t>(chunks * micro_batches)) {}
  void set_receive(int64_t chunk, int64_t micro_batch, OpId op) {
    receives_[slot(chunk, micro_batch)] = op;
  }
  OpId receive(int64_t chunk, int64_t micro_batch) const {
    return receives_[slot(chunk, micro_batch)];
  }

 private:
  size_t slot(int64_t chunk, int64_t micro_batch) const {
    return static_cast<size_t>(chunk * micro_batches_ + micro_batch);
  }
  int64_t micro_batches_;
  std::vector<OpId> receives_;
};

struct StepLayout {
  const ScheduleRow& schedule;
  ScheduleShape shape;
  int64_t chunks;                       // of the model
  std::vector<ChunkUnits> chunk_units;  // by model chunk
};

// Emits the program of one stage.
class StageLowering {
 public:
  StageLowering(const WorkloadSpec& spec, const StepLayout& layout, const SharedWork& shared,
                const TypedVector<WorkId, Work>& works, int64_t stage, MessageTable& forward,
                MessageTable& backward)
      : spec_(spec),
        layout_(layout),
        shared_(shared),
        works_(works),
        stage_(stage),
        forward_(forward),
        backward_(backward),
        builder_(works) {
    const auto chunks = static_cast<size_t>(chunks_per_stage(layout.schedule, layout.shape));
    backwards_left_.assign(chunks, 0);
    gathers_.resize(chunks);
  }

  Program lower(WorkId optimizer) {
    const std::vector<Pass> order = layout_.schedule.order(layout_.shape, stage_);
    for (const Pass& pass : order) {
      if (finishes_gradients(pass.kind)) ++backwards_left_[static_cast<size_t>(pass.chunk)];
    }
    if (gathers_once()) gather_parameters();
    for (const Pass& pass : order) lower_pass(pass);
    finish_step(optimizer);
    return builder_.build();
  }

 private:
  static bool finishes_gradients(PassKind kind) {
    return kind == PassKind::kBackward || kind == PassKind::kBackwardWeight;
  }
  int64_t data_ranks() const { return spec_.plan.dp * spec_.plan.cp; }
  bool sharded() const { return spec_.plan.shard != Sharding::kNone && data_ranks() > 1; }
  bool gathers_once() const { return sharded() && spec_.plan.shard != Sharding::kZero3; }
  bool reduces_each_pass() const {
    return sharded() &&
           (spec_.plan.shard == Sharding::kZero2 || spec_.plan.shard == Sharding::kZero3);
  }
  bool gathers_each_pass() const { return sharded() && spec_.plan.shard == Sharding::kZero3; }

  int64_t model_chunk() const {
    return model_chunk_at(layout_.schedule, layout_.shape, {stage_, chunk_});
  }
  const std::vector<UnitKind>& units() const {
    return layout_.chunk_units[static_cast<size_t>(model_chunk())].units;
  }

  OpId add(WorkId work, const std::vector<OpId>& dependencies) {
    const OpId op = builder_.add(work, dependencies, micro_batch_, chunk_);
    builder_.op(op).phase = phase_;
    return op;
  }

  // All of the stage's parameters at the start of the step, in the order the forward pass needs them. Without overlap
  // the first pass of each chunk waits for the last of them.
  void gather_parameters() {
    for (size_t chunk = 0; chunk < gathers_.size(); ++chunk) {
      chunk_ = static_cast<int32_t>(chunk);
      for (const UnitKind unit : units()) {
        gathers_[chunk].push_back(add(shared_.gather[static_cast<size_t>(unit)], {}));
      }
    }
    const SoftwareStack& software = spec_.software;
    if ((software.dp_overlap && software.dp_gather_overlap) || builder_.size() == 0) return;
    for (std::vector<OpId>& chunk : gathers_) {
      for (OpId& gather : chunk) gather = builder_.last();
    }
  }

  void lower_pass(const Pass& pass) {
    micro_batch_ = pass.micro_batch;
    chunk_ = pass.chunk;
    phase_ = pass.kind == PassKind::kForward ? StepPhase::kForward : StepPhase::kBackward;
    switch (pass.kind) {
      case PassKind::kForward:
        return lower_forward();
      case PassKind::kBackward:
        return lower_backward(&PassTemplates::backward, true);
      case PassKind::kBackwardInput:
        return lower_backward(&PassTemplates::backward_input, true);
      case PassKind::kBackwardWeight:
        return lower_backward(&PassTemplates::backward_weight, false);
    }
  }

  void lower_forward() {
    std::vector<OpId> start = receive(-1, shared_.receive_forward, forward_);
    std::vector<OpId>& gathers = gathers_[static_cast<size_t>(chunk_)];
    const std::vector<UnitKind>& sequence = units();
    for (size_t u = 0; u < sequence.size(); ++u) {
      if (gathers_each_pass()) start.push_back(gather_ahead(sequence[u]));
      if (!gathers.empty()) start.push_back(gathers[u]);
      const auto unit = static_cast<size_t>(sequence[u]);
      launch(shared_.launch[unit].forward, start);
      start = stamp(shared_.passes[unit].forward, start);
    }
    gathers.clear();  // later micro-batches follow in stream order
    send(1, shared_.send_forward, start);
  }

  void lower_backward(WorkTemplate PassTemplates::*part, bool input) {
    std::vector<OpId> start;
    if (input) start = receive(1, shared_.receive_backward, backward_);
    const std::vector<UnitKind>& sequence = units();
    const bool weight = part != &PassTemplates::backward_input;
    const bool last = weight && --backwards_left_[static_cast<size_t>(chunk_)] == 0;
    const bool gathers = gathers_each_pass() && input;
    std::optional<OpId> gathered;
    if (gathers) gathered = gather_ahead(sequence.back());
    for (size_t u = sequence.size(); u-- > 0;) {
      const UnitKind unit = sequence[u];
      if (gathers) {
        start.push_back(*gathered);
        // Before this unit's reduction, which shares the stream and has to wait for its gradients.
        if (u > 0) gathered = gather_ahead(sequence[u - 1], unit_ends_.size());
      }
      if (input) launch(shared_.launch[static_cast<size_t>(unit)].backward, start);
      start = stamp(shared_.passes[static_cast<size_t>(unit)].*part, start);
      if (data_ranks() > 1 && (last || (weight && reduces_each_pass()))) {
        // A unit without a weight pass had its gradients in its input pass, which is before.
        if (start.empty()) start.push_back(unit_ends_.back());
        reduce(unit, start);
      }
    }
    if (input) send(-1, shared_.send_backward, start);
  }

  // The host launches the unit. Its last kernel waits for that, since it is launched last. A stack that waits for its
  // messages (p2p_async false) launches nothing before one has arrived.
  void launch(const std::optional<WorkId>& work, const std::vector<OpId>& start) {
    if (!work) return;
    std::vector<OpId> after;
    for (const OpId op : start) {
      const bool waits = works_[builder_.op(op).work].kind == WorkKind::kReceive;
      if (waits && !spec_.software.p2p_async) after.push_back(op);
    }
    launched_ = add(*work, after);
  }

  // Issued when the unit before it starts to compute: one unit ahead, as FSDP prefetches. `ends`: of how many units the
  // last ops are known, not counting the one before it.
  OpId gather_ahead(UnitKind unit, size_t ends) {
    std::vector<OpId> after;
    if (ends > 0) after.push_back(unit_ends_[ends - 1]);
    return add(shared_.gather[static_cast<size_t>(unit)], after);
  }
  OpId gather_ahead(UnitKind unit) {
    return gather_ahead(unit, unit_ends_.empty() ? 0 : unit_ends_.size() - 1);
  }

  void reduce(UnitKind unit, const std::vector<OpId>& after) {
    if (spec_.software.dp_overlap) {
      add(shared_.reduce[static_cast<size_t>(unit)], after);
    } else {
      deferred_.push_back(unit);
    }
  }

  // What the pass starts from: the message from the neighbouring model chunk or, where that chunk is the stage's own,
  // its last op. The last chunk turns round: its backward pass starts from the loss.
  std::vector<OpId> receive(int64_t from, WorkId work, MessageTable& table) {
    const int64_t source = model_chunk() + from;
    if (source < 0) return {};
    if (source >= layout_.chunks || place(source).stage == stage_) {
      return {table.receive(model_chunk(), micro_batch_)};
    }
    const OpId op = add(work, {});
    table.set_receive(model_chunk(), micro_batch_, op);
    return {op};
  }

  void send(int64_t to, WorkId work, const std::vector<OpId>& after) {
    const int64_t target = model_chunk() + to;
    if (target < 0) return;
    if (target >= layout_.chunks) {
      return backward_.set_receive(model_chunk(), micro_batch_, after.back());
    }
    if (place(target).stage == stage_) {
      MessageTable& table = to > 0 ? forward_ : backward_;
      return table.set_receive(target, micro_batch_, after.back());
    }
    const OpId sent = add(work, after);
    if (!spec_.software.p2p_async) blocking_send_ = sent;
    Op& op = builder_.op(sent);
    op.peer = ProgramId(static_cast<size_t>(place(target).stage));
    // The receive may be in a program that does not exist yet: keep the chunk, connect_messages() puts the op.
    op.receive = OpId(static_cast<size_t>(target));
  }

  ChunkPlace place(int64_t chunk) const {
    return place_of_chunk(layout_.schedule, layout_.shape, micro_batch_, chunk);
  }

  // Stamps a template after `start`; returns what its last step is.
  std::vector<OpId> stamp(const WorkTemplate& steps, const std::vector<OpId>& start) {
    if (steps.empty()) return start;
    stamped_.clear();
    size_t last_kernel = steps.size();
    for (size_t s = 0; s < steps.size(); ++s) {
      if (works_[steps[s].work].kind == WorkKind::kCompute) last_kernel = s;
    }
    for (size_t s = 0; s < steps.size(); ++s) {
      const TemplateStep& step = steps[s];
      dependencies_.clear();
      if (s == 0 && blocking_send_) dependencies_.push_back(*std::exchange(blocking_send_, {}));
      if (s == last_kernel && launched_) dependencies_.push_back(*std::exchange(launched_, {}));
      for (const int before : step.after) {
        if (before == kBefore) {
          for (const OpId op : start) depend(op, step.work);
        } else {
          depend(stamped_[static_cast<size_t>(before)], step.work);
        }
      }
      stamped_.push_back(add(step.work, dependencies_));
    }
    unit_ends_.push_back(stamped_.back());
    return {stamped_.back()};
  }

  // Ops of one stream run in order without being told.
  void depend(OpId before, WorkId work) {
    const Stream stream = works_[builder_.op(before).work].stream;
    if (stream != works_[work].stream || stream == Stream::kReceive) dependencies_.push_back(before);
  }

  void finish_step(WorkId optimizer) {
    micro_batch_ = -1;
    chunk_ = -1;
    phase_ = StepPhase::kOptimizer;
    std::vector<OpId> computed;
    if (!unit_ends_.empty()) computed.push_back(unit_ends_.back());
    for (const UnitKind unit : deferred_) {
      add(shared_.reduce[static_cast<size_t>(unit)], computed);
    }
    // On the data-parallel stream, so behind every reduction.
    const OpId norm = add(shared_.gradient_norm, computed);
    add(optimizer, {norm});
    const Work& host = works_[shared_.host];
    if (host.host_floor + host.jitter > Duration::zero()) add(shared_.host, {});
  }

  const WorkloadSpec& spec_;
  const StepLayout& layout_;
  const SharedWork& shared_;
  const TypedVector<WorkId, Work>& works_;
  const int64_t stage_;
  MessageTable& forward_;
  MessageTable& backward_;
  ProgramBuilder builder_;
  int32_t micro_batch_ = -1;
  int32_t chunk_ = -1;
  StepPhase phase_ = StepPhase::kUnknown;
  std::vector<int64_t> backwards_left_;     // by local chunk: passes until its gradients are whole
  std::vector<std::vector<OpId>> gathers_;  // by local chunk: of its units, until the first forward
  std::vector<OpId> unit_ends_;             // last op of each unit stamped so far
  std::vector<UnitKind> deferred_;          // reductions that wait for the end of the step
  std::optional<OpId> blocking_send_;         // that the next kernel waits for
  std::optional<OpId> launched_;              // what launches the unit that is stamped next
  std::vector<OpId> stamped_, dependencies_;  // of stamp(), kept for their memory
};

WorkId optimizer_work(const WorkloadSpec& spec, const std::vector<const ChunkUnits*>& chunks,
                      TypedVector<WorkId, Work>& works) {
  int64_t parameters = 0, layers = 0;
  for (const ChunkUnits* chunk : chunks) {
    for (const UnitKind unit : chunk->units) {
      parameters += unit_parameters(spec, unit);
      if (unit == UnitKind::kLayer || unit == UnitKind::kRecomputedLayer) ++layers;
    }
  }
  const int64_t shards = spec.plan.shard == Sharding::kNone ? 1 : spec.plan.dp * spec.plan.cp;
  const double moved = static_cast<double>(parameters) / static_cast<double>(shards) *
                       spec.software.optimizer_bytes;
  Work work;
  work.name = "optimizer";
  work.host_floor = seconds_rounded_up(static_cast<double>(layers) * 1e-6 *
                                       spec.software.host_microseconds_per_layer_optimizer);
  work.kernels.push_back(
      {"optimizer", TimeTerm::kOptimizer,
       MemoryTraffic{Bytes(static_cast<int64_t>(moved)), StreamClass::kOptimizer}});
  return works.push_back(std::move(work));
}

// Replaces the model chunk that each send carries by the op that receives it.
void connect_messages(OpGraph& graph, const MessageTable& forward, const MessageTable& backward) {
  for (Program& program : graph.programs) {
    for (Op& op : program.ops) {
      const Work& work = graph.works[op.work];
      if (work.kind != WorkKind::kSend) continue;
      const MessageTable& table = work.stream == Stream::kSendForward ? forward : backward;
      op.receive = table.receive(static_cast<int64_t>(op.receive.index()), op.micro_batch);
    }
  }
}

// Those that recompute lie evenly: layer l where the whole part of l * fraction steps up after it.
UnitKind layer_unit(const Training& training, int64_t layer) {
  if (training.recompute == Recompute::kNone) return UnitKind::kLayer;
  const double before = std::floor(static_cast<double>(layer) * training.recompute_fraction + 1e-9);
  const double after = std::floor(static_cast<double>(layer + 1) * training.recompute_fraction + 1e-9);
  return after > before ? UnitKind::kRecomputedLayer : UnitKind::kLayer;
}

StepLayout step_layout(const WorkloadSpec& spec, const ScheduleRow& schedule,
                       const std::vector<StageLayout>& layouts) {
  const ScheduleShape shape = schedule_shape(spec.plan, spec.training);
  StepLayout layout{schedule, shape, model_chunks(schedule, shape), {}};
  int64_t layer = 0;
  for (int64_t chunk = 0; chunk < layout.chunks; ++chunk) {
    const ChunkPlace place = place_of_chunk(schedule, shape, 0, chunk);
    const auto layers = static_cast<size_t>(
        layouts[static_cast<size_t>(place.stage)].layers[static_cast<size_t>(place.chunk)]);
    ChunkUnits units;
    if (chunk == 0) units.units.push_back(UnitKind::kEmbedding);
    for (size_t l = 0; l < layers; ++l) units.units.push_back(layer_unit(spec.training, layer++));
    if (chunk == layout.chunks - 1) units.units.push_back(UnitKind::kHead);
    layout.chunk_units.push_back(std::move(units));
  }
  return layout;
}

}  // namespace

ScheduleShape schedule_shape(const ParallelPlan& plan, const Training& training) {
  return {.stages = plan.pp,
          .micro_batches = training.global_batch / (plan.dp * plan.micro_batch),
          .virtual_stages = plan.virtual_stages,
          .consecutive_micro_batches = training.consecutive_micro_batches};
}

OpGraph lower_step(const WorkloadSpec& spec, const ScheduleRow& schedule,
                   const std::vector<StageLayout>& layouts) {
  HERDSIM_CHECK(static_cast<int64_t>(layouts.size()) == spec.plan.pp) << "one layout a stage";
  const StepLayout layout = step_layout(spec, schedule, layouts);
  OpGraph graph;
  graph.grid = RankGrid(spec.plan.tp, spec.plan.cp, spec.plan.pp, spec.plan.dp);
  const SharedWork shared = shared_work(spec, graph.works);
  MessageTable forward(layout.chunks, layout.shape.micro_batches);
  MessageTable backward(layout.chunks, layout.shape.micro_batches);
  const int64_t local_chunks = chunks_per_stage(schedule, layout.shape);
  for (int64_t stage = 0; stage < spec.plan.pp; ++stage) {
    std::vector<const ChunkUnits*> held;
    for (int64_t chunk = 0; chunk < local_chunks; ++chunk) {
      const int64_t model_chunk = model_chunk_at(schedule, layout.shape, {stage, chunk});
      held.push_back(&layout.chunk_units[static_cast<size_t>(model_chunk)]);
    }
    const WorkId optimizer = optimizer_work(spec, held, graph.works);
    StageLowering lowering(spec, layout, shared, graph.works, stage, forward, backward);
    graph.programs.push_back(lowering.lower(optimizer));
  }
  connect_messages(graph, forward, backward);
  return graph;
}

ModelFlops model_flops(const ModelArchitecture& model, const Training& training) {
  const auto tokens = static_cast<double>(training.tokens());
  const double matrices = static_cast<double>(model.layers * model.active_layer_matrix_parameters() +
                                              model.embedding_parameters());
  // Forward 4 s h_q a token and layer over the full square, backward twice that.
  const double square = 12.0 * static_cast<double>(model.layers * model.query_width()) *
                        static_cast<double>(training.sequence_length);
  return {.causal = Flops(tokens * (6 * matrices + square / 2)),
          .full = Flops(tokens * (6 * matrices + square))};
}

}  // namespace herdsim
