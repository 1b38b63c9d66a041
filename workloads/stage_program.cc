#include "workloads/stage_program.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "sim/base/check.h"
#include "workloads/stage_layout.h"

namespace herdsim {
namespace {

class StageLowering {
 public:
  StageLowering(const StageQuestion& question, MessageTable& forward, MessageTable& backward)
      : spec_(question.spec),
        layout_(question.layout),
        shared_(question.work),
        buckets_(question.buckets),
        works_(question.works),
        stage_(question.stage),
        forward_(forward),
        backward_(backward),
        builder_(question.works) {
    const auto chunks = static_cast<size_t>(chunks_per_stage(layout_.schedule, layout_.shape));
    backwards_left_.assign(chunks, 0);
    if (question.like != nullptr) builder_.reserve(*question.like);
    deferrals_left_ = deferred_head_gradients(spec_.model, spec_.software, spec_.plan,
                                              layout_.schedule, layout_.shape.micro_batches);
    gathers_.resize(chunks);
  }

  Program lower(WorkId optimizer) {
    const std::vector<Pass> order = layout_.schedule.order(layout_.shape, stage_);
    for (const Pass& pass : order) {
      if (finishes_gradients(pass.kind)) ++backwards_left_[static_cast<size_t>(pass.chunk)];
    }
    if (gathers_once()) gather_parameters(order);
    for (size_t p = 0; p < order.size(); ++p) {
      if (p + 1 < order.size() && makes_a_pair(order[p], order[p + 1])) {
        lower_pair(order[p], order[p + 1]);
        ++p;
      } else {
        lower_pass(order[p]);
      }
    }
    finish_step(optimizer);
    return builder_.build();
  }

 private:
  static bool finishes_gradients(PassKind kind) {
    return kind == PassKind::kBackward || kind == PassKind::kBackwardWeight;
  }
  bool gathers_once() const {
    return spec_.plan.shard != Sharding::kNone && spec_.plan.shard != Sharding::kZero3;
  }
  bool gathers_each_pass() const { return spec_.plan.shard == Sharding::kZero3; }
  bool reduces_each_pass() const {
    return spec_.plan.shard == Sharding::kZero2 || spec_.plan.shard == Sharding::kZero3;
  }

  int64_t model_chunk() const {
    return model_chunk_at(layout_.schedule, layout_.shape, {stage_, chunk_});
  }
  const std::vector<UnitKind>& units() const { return layout_.units_at(stage_, chunk_); }

  const ChunkBuckets& buckets() const { return buckets_[static_cast<size_t>(model_chunk())]; }

  // An op that is not in the program yet: of a pair of passes whose ops are put in order when all
  // are known.
  struct PendingOp {
    WorkId work;
    std::vector<OpId> dependencies;
    int32_t micro_batch = -1, chunk = -1;
    StepPhase phase = StepPhase::kUnknown;
    std::optional<ChunkPlace> peer;
    OpId receive;
  };
  // Pending ops are numbered from here until they have a place in the program.
  static constexpr size_t kFirstPending = size_t{1} << 31;
  static bool is_pending(OpId op) { return op.index() >= kFirstPending; }
  PendingOp& pending(OpId op) { return pending_[op.index() - kFirstPending]; }

  OpId add(WorkId work, const std::vector<OpId>& dependencies) {
    if (pairs_) {
      pending_.push_back({work, dependencies, micro_batch_, chunk_, phase_, {}, {}});
      return OpId(kFirstPending + pending_.size() - 1);
    }
    const OpId op = builder_.add(work, dependencies, micro_batch_, chunk_);
    builder_.op(op).phase = phase_;
    return op;
  }
  const Work& work_of(OpId op) {
    return works_[is_pending(op) ? pending(op).work : builder_.op(op).work];
  }

  // A forward pass and the whole backward pass after it, of another micro-batch or chunk. Not the
  // stage's first backward pass: where all forward passes come first, what it starts from waits for
  // the last of them.
  bool makes_a_pair(const Pass& first, const Pass& second) const {
    return spec_.software.pass_overlap && has_gone_back_ && first.kind == PassKind::kForward &&
           second.kind == PassKind::kBackward &&
           (first.micro_batch != second.micro_batch || first.chunk != second.chunk);
  }

  // Emits both passes, changing from one to the other after each transfer that the next kernels
  // wait for, so that it runs beside the other's kernels.
  void lower_pair(const Pass& first, const Pass& second) {
    const size_t ends_before = unit_ends_.size();
    pairs_ = true;
    lower_pass(first);
    const size_t of_first = pending_.size();
    lower_pass(second);
    pairs_ = false;
    std::vector<OpId> placed(pending_.size(), OpId(kFirstPending));
    size_t next[] = {0, of_first};
    const size_t end[] = {of_first, pending_.size()};
    for (size_t from = 0; next[0] < end[0] || next[1] < end[1]; from = 1 - from) {
      for (bool waits = false; !waits && next[from] < end[from]; ++next[from]) {
        waits = works_[pending_[next[from]].work].kind == WorkKind::kCollective;
        placed[next[from]] = place_pending(pending_[next[from]], placed);
      }
    }
    const auto settle = [&](OpId& op) {
      if (is_pending(op)) op = placed[op.index() - kFirstPending];
    };
    for (size_t u = ends_before; u < unit_ends_.size(); ++u) settle(unit_ends_[u]);
    for (const MessageStart& start : starts_) {
      OpId op = start.table->receive(start.chunk, start.micro_batch);
      settle(op);
      start.table->set_receive(start.chunk, start.micro_batch, op);
    }
    if (blocking_send_) settle(*blocking_send_);
    if (launched_) settle(*launched_);
    starts_.clear();
    pending_.clear();
  }

  OpId place_pending(const PendingOp& op, const std::vector<OpId>& placed) {
    dependencies_.clear();
    for (const OpId before : op.dependencies) {
      const OpId at = is_pending(before) ? placed[before.index() - kFirstPending] : before;
      // A gather that was to wait for the other pass of the pair goes ahead.
      if (!is_pending(at)) dependencies_.push_back(at);
    }
    const OpId id = builder_.add(op.work, dependencies_, op.micro_batch, op.chunk);
    builder_.op(id).phase = op.phase;
    if (op.peer) address(builder_.op(id), *op.peer, op.receive);
    return id;
  }

  static void address(Op& op, const ChunkPlace& peer, OpId target) {
    op.peer = ProgramId(static_cast<size_t>(peer.stage));
    op.receive = target;
  }

  void set_start(MessageTable& table, int64_t chunk, int64_t micro_batch, OpId op) {
    table.set_receive(chunk, micro_batch, op);
    if (pairs_) starts_.push_back({&table, chunk, micro_batch});
  }

  // All of the stage's parameters at the start of the step, in the order the forward passes need
  // them. Without overlap the first pass of each chunk waits for the last of them.
  void gather_parameters(const std::vector<Pass>& order) {
    for (const Pass& pass : order) {
      std::vector<OpId>& gathers = gathers_[static_cast<size_t>(pass.chunk)];
      if (pass.kind != PassKind::kForward || !gathers.empty()) continue;
      chunk_ = pass.chunk;
      const ChunkBuckets& chunk = buckets();
      for (size_t u = 0; u < units().size(); ++u) {
        const size_t bucket = chunk.of_unit[u];
        if (u == 0 || bucket != chunk.of_unit[u - 1]) {
          for (const WorkId work : chunk.gather[bucket]) add(work, {});
        }
        // Every bucket has something to gather, or none has.
        if (builder_.size() > 0) gathers.push_back(builder_.last());
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
      if (gathers_each_pass()) wait_for(gather_ahead(sequence[u], before_last_end()), start);
      if (!gathers.empty()) start.push_back(gathers[u]);
      const auto unit = static_cast<size_t>(sequence[u]);
      launch(shared_.launch[unit].forward, start);
      start = stamp(shared_.passes[unit].forward, start);
    }
    gathers.clear();  // later micro-batches follow in stream order
    send(1, shared_.send_forward, start);
  }

  void lower_backward(WorkTemplate PassTemplates::*part, bool input) {
    has_gone_back_ = true;
    std::vector<OpId> start;
    if (input) start = receive(1, shared_.receive_backward, backward_);
    const std::vector<UnitKind>& sequence = units();
    const bool weight = part != &PassTemplates::backward_input;
    const bool last = weight && --backwards_left_[static_cast<size_t>(chunk_)] == 0;
    const bool gathers = gathers_each_pass() && input;
    std::optional<OpId> gathered;
    if (gathers && !sequence.empty()) gathered = gather_ahead(sequence.back(), before_last_end());
    for (size_t u = sequence.size(); u-- > 0;) {
      const UnitKind unit = sequence[u];
      if (gathers) {
        wait_for(gathered, start);
        // Before this unit's reduction, which shares the stream and has to wait for its gradients.
        if (u > 0) gathered = gather_ahead(sequence[u - 1], unit_ends_.size());
      }
      if (input) launch(shared_.launch[static_cast<size_t>(unit)].backward, start);
      start = stamp(backward_template(unit, part), start);
      // A unit without a weight pass had its gradients in its input pass, which is before.
      const bool reduces = weight && (last || reduces_each_pass());
      if (reduces && start.empty()) start.push_back(unit_ends_.back());
      if (reduces && reduces_each_pass()) {
        reduce(shared_.reduce[static_cast<size_t>(unit)], start);
      } else if (reduces && (u == 0 || buckets().of_unit[u - 1] != buckets().of_unit[u])) {
        const size_t bucket = buckets().of_unit[u];
        const std::vector<WorkId>& works = buckets().reduce[bucket];
        if (is_head(sequence.back()) && !deferred_heads_.empty() &&
            bucket == buckets().of_unit.back()) {
          after_heads_ = works;
        } else {
          reduce(works, start);
        }
      }
    }
    if (input) send(-1, shared_.send_backward, start);
  }

  static bool is_head(UnitKind unit) {
    return unit == UnitKind::kHead || unit == UnitKind::kTiedHead;
  }

  // Of the head, some micro-batches leave the weight gradients for the end.
  const WorkTemplate& backward_template(UnitKind unit, WorkTemplate PassTemplates::*part) {
    if (is_head(unit) && deferrals_left_ > 0) {
      --deferrals_left_;
      deferred_heads_.push_back({unit, micro_batch_, chunk_});
      part = &PassTemplates::backward_input;
    }
    return shared_.passes[static_cast<size_t>(unit)].*part;
  }

  void make_deferred_gradients() {
    for (const DeferredHead& head : deferred_heads_) {
      micro_batch_ = head.micro_batch;
      chunk_ = head.chunk;
      phase_ = StepPhase::kBackward;
      stamp(shared_.passes[static_cast<size_t>(head.unit)].backward_weight, {});
    }
    if (!deferred_heads_.empty()) reduce(after_heads_, {unit_ends_.back()});
  }

  // The host launches the unit. Its last kernel waits for that, since it is launched last. A stack
  // that waits for its messages (p2p_async false) launches nothing before one has arrived.
  void launch(const std::optional<WorkId>& work, const std::vector<OpId>& start) {
    if (!work) return;
    std::vector<OpId> after;
    for (const OpId op : start) {
      const bool waits = work_of(op).kind == WorkKind::kReceive;
      if (waits && !spec_.software.p2p_async) after.push_back(op);
    }
    launched_ = add(*work, after);
  }

  // Issued when the unit before it starts to compute: one unit ahead, as FSDP prefetches. `ends`:
  // of how many units the last ops are known, not counting the one before it. Nothing where the
  // unit is not shared out.
  std::optional<OpId> gather_ahead(UnitKind unit, size_t ends) {
    std::vector<OpId> after;
    if (ends > 0) after.push_back(unit_ends_[ends - 1]);
    std::optional<OpId> last;
    for (const WorkId work : shared_.gather[static_cast<size_t>(unit)]) last = add(work, after);
    return last;
  }
  size_t before_last_end() const { return unit_ends_.empty() ? 0 : unit_ends_.size() - 1; }
  static void wait_for(const std::optional<OpId>& op, std::vector<OpId>& start) {
    if (op) start.push_back(*op);
  }

  void reduce(const std::vector<WorkId>& works, const std::vector<OpId>& after) {
    for (const WorkId work : works) {
      if (spec_.software.dp_overlap) {
        add(work, after);
      } else {
        deferred_.push_back(work);
      }
    }
  }

  // What the pass starts from: the message from the neighbouring model chunk or, where that chunk
  // is the stage's own, its last op. The last chunk turns round: its backward pass starts from the
  // loss.
  std::vector<OpId> receive(int64_t from, WorkId work, MessageTable& table) {
    const int64_t source = model_chunk() + from;
    if (source < 0) return {};
    if (source >= layout_.chunks() || place(source).stage == stage_) {
      return {table.receive(model_chunk(), micro_batch_)};
    }
    const OpId op = add(work, {});
    set_start(table, model_chunk(), micro_batch_, op);
    return {shared_.read_message ? add(*shared_.read_message, {op}) : op};
  }

  void send(int64_t to, WorkId work, const std::vector<OpId>& after) {
    const int64_t target = model_chunk() + to;
    if (target < 0) return;
    if (target >= layout_.chunks()) {
      return set_start(backward_, model_chunk(), micro_batch_, after.back());
    }
    if (place(target).stage == stage_) {
      MessageTable& table = to > 0 ? forward_ : backward_;
      return set_start(table, target, micro_batch_, after.back());
    }
    const OpId sent = add(work, after);
    if (!spec_.software.p2p_async) blocking_send_ = sent;
    // The receive may be in a program that does not exist yet: keep the chunk, connect_messages()
    // puts the op.
    const OpId chunk(static_cast<size_t>(target));
    if (is_pending(sent)) {
      pending(sent).peer = place(target);
      pending(sent).receive = chunk;
    } else {
      address(builder_.op(sent), place(target), chunk);
    }
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
    const Stream stream = work_of(before).stream;
    if (stream != works_[work].stream || stream == Stream::kReceive)
      dependencies_.push_back(before);
  }

  void finish_step(WorkId optimizer) {
    make_deferred_gradients();
    micro_batch_ = -1;
    chunk_ = -1;
    phase_ = StepPhase::kOptimizer;
    std::vector<OpId> computed;
    if (!unit_ends_.empty()) computed.push_back(unit_ends_.back());
    for (const WorkId work : deferred_) add(work, computed);
    if (shared_.tied_gradients && holds_one_end()) add(*shared_.tied_gradients, computed);
    if (shared_.norm_gradient) computed = reduce_norms(std::move(computed));
    // On the data-parallel stream, so behind every reduction.
    const OpId norm = add(shared_.gradient_norm, computed);
    add(optimizer, {norm});
    const Work& host = works_[shared_.host];
    if (host.host_floor + host.jitter > Duration::zero()) add(shared_.host, {});
  }

  // Gradients of the norms of all layers, and of the last one where it is here, one after another. Returns what
  // follows.
  std::vector<OpId> reduce_norms(std::vector<OpId> after) {
    int64_t norms = 0;
    for (int64_t chunk = 0; chunk < chunks_per_stage(layout_.schedule, layout_.shape); ++chunk) {
      for (const UnitKind unit : layout_.units_at(stage_, chunk)) {
        if (is_layer(unit)) norms += spec_.software.norm_reductions_per_layer;
        if (unit == UnitKind::kHead || unit == UnitKind::kTiedHead) ++norms;
      }
    }
    for (int64_t n = 0; n < norms; ++n) after = {add(*shared_.norm_gradient, n == 0 ? after : std::vector<OpId>{})};
    return after;
  }

  // Whether one of the two copies of a tied embedding is here, and the other one elsewhere.
  bool holds_one_end() const {
    const auto holds = [&](UnitKind unit) {
      for (int64_t chunk = 0; chunk < chunks_per_stage(layout_.schedule, layout_.shape); ++chunk) {
        const std::vector<UnitKind>& at = layout_.units_at(stage_, chunk);
        if (std::find(at.begin(), at.end(), unit) != at.end()) return true;
      }
      return false;
    };
    return holds(UnitKind::kHead) || (holds(UnitKind::kEmbedding) && !holds(UnitKind::kTiedHead));
  }

  const WorkloadSpec& spec_;
  const StepLayout& layout_;
  const StepWork& shared_;
  const std::vector<ChunkBuckets>& buckets_;
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
  std::vector<WorkId> deferred_;            // reductions that wait for the end of the step
  struct DeferredHead {
    UnitKind unit;
    int32_t micro_batch, chunk;
  };
  int64_t deferrals_left_ = 0;
  std::vector<DeferredHead> deferred_heads_;  // whose weight gradients are still to be made
  std::vector<WorkId> after_heads_;           // reductions that wait for them
  std::optional<OpId> blocking_send_;         // that the next kernel waits for
  std::optional<OpId> launched_;              // what launches the unit that is stamped next
  std::vector<OpId> stamped_, dependencies_;  // of stamp(), kept for their memory
  // While a pair of passes is put together.
  struct MessageStart {
    MessageTable* table;
    int64_t chunk, micro_batch;
  };
  bool pairs_ = false, has_gone_back_ = false;
  std::vector<PendingOp> pending_;
  std::vector<MessageStart> starts_;
};

}  // namespace

Program stage_program(const StageQuestion& question, MessageTable& forward,
                      MessageTable& backward) {
  return StageLowering(question, forward, backward).lower(question.optimizer);
}

}  // namespace herdsim
