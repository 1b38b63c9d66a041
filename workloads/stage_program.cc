#include "workloads/stage_program.h"

#include <optional>
#include <utility>

#include "sim/base/check.h"
#include "workloads/pass_pair.h"
#include "workloads/stage_layout.h"

namespace herdsim {
namespace {

class StageLowering {
 public:
  StageLowering(const StageQuestion& question, StepTables& tables)
      : spec_(question.spec),
        layout_(question.layout),
        shared_(question.work),
        buckets_(question.buckets),
        works_(question.works),
        stage_(question.stage),
        op_by_op_(question.op_by_op),
        forward_(tables.forward),
        backward_(tables.backward),
        known_(tables.passes),
        builder_(question.works) {
    const auto chunks = static_cast<size_t>(chunks_per_stage(layout_.schedule, layout_.shape));
    backwards_left_.assign(chunks, 0);
    if (question.like != nullptr) builder_.reserve(*question.like);
    deferrals_left_ = deferred_head_gradients(spec_.model, spec_.software, spec_.plan,
                                              layout_.schedule, layout_.shape.micro_batches);
    gathers_.resize(chunks);
  }

  StageProgram lower(WorkId optimizer) {
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
    return {builder_.build(), std::move(sends_)};
  }

 private:
  static bool finishes_gradients(PassKind kind) {
    return kind == PassKind::kBackward || kind == PassKind::kBackwardWeight;
  }
  bool gathers_once() const {
    return spec_.plan.shard != Sharding::kNone && spec_.plan.shard != Sharding::kZero3;
  }
  bool gathers_each_pass() const { return spec_.plan.shard == Sharding::kZero3; }
  bool reduces_by_unit() const {
    return spec_.plan.shard == Sharding::kZero2 || spec_.plan.shard == Sharding::kZero3;
  }
  bool reduces_each_pass() const { return reduces_by_unit() && !spec_.software.dp_reduces_once; }

  void set_chunk(int32_t chunk) {
    chunk_ = chunk;
    model_chunk_ = model_chunk_at(layout_.schedule, layout_.shape, {stage_, chunk});
  }
  const std::vector<UnitKind>& units() const {
    return layout_.units[static_cast<size_t>(model_chunk_)];
  }
  const ChunkBuckets& buckets() const { return buckets_[static_cast<size_t>(model_chunk_)]; }

  std::optional<OpId>& anchor(Anchor anchor) { return anchors_[static_cast<size_t>(anchor)]; }

  OpId add(WorkId work, const std::vector<OpId>& dependencies) {
    if (pairs_) return pair_.add({work, dependencies, micro_batch_, chunk_, phase_});
    const OpId op = builder_.add(work, dependencies, micro_batch_, chunk_);
    builder_.op(op).phase = phase_;
    return op;
  }
  const Work& work_of(OpId op) {
    return works_[PassPair::is_pending(op) ? pair_.work(op) : builder_.op(op).work];
  }

  // A forward pass and the whole backward pass after it, of another micro-batch or chunk. Not the
  // stage's first backward pass: where all forward passes come first, what it starts from waits for
  // the last of them.
  bool makes_a_pair(const Pass& first, const Pass& second) const {
    return spec_.software.pass_overlap && has_gone_back_ && first.kind == PassKind::kForward &&
           second.kind == PassKind::kBackward &&
           (first.micro_batch != second.micro_batch || first.chunk != second.chunk);
  }

  void lower_pair(const Pass& first, const Pass& second) {
    pairs_ = true;
    lower_pass(first);
    pair_.begin_second();
    lower_pass(second);
    pairs_ = false;
    pair_.place(works_, builder_, anchors_, sends_);
  }

  void set_start(MessageTable& table, int64_t chunk, OpId op) {
    table.set_receive(chunk, micro_batch_, op);
    if (pairs_) pair_.set_start(table, chunk, micro_batch_);
  }

  // All of the stage's parameters at the start of the step, in the order the forward passes need
  // them. Without overlap the first pass of each chunk waits for the last of them.
  void gather_parameters(const std::vector<Pass>& order) {
    for (const Pass& pass : order) {
      std::vector<OpId>& gathers = gathers_[static_cast<size_t>(pass.chunk)];
      if (pass.kind != PassKind::kForward || !gathers.empty()) continue;
      set_chunk(pass.chunk);
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
    set_chunk(pass.chunk);
    const bool forward = pass.kind == PassKind::kForward;
    phase_ = forward ? StepPhase::kForward : StepPhase::kBackward;
    if (!forward) has_gone_back_ = true;
    const bool passes_on = pass.kind != PassKind::kBackwardWeight;
    const int64_t ahead = forward ? 1 : -1;
    input_ = passes_on ? edge(-ahead) : PassEdge::kNone;
    output_ = passes_on ? edge(ahead) : PassEdge::kNone;
    ends_ = {};
    anchor(Anchor::kSource) = {};
    if (input_ == PassEdge::kOwnStage)
      anchor(Anchor::kSource) = table(ahead).receive(model_chunk_, micro_batch_);
    if (op_by_op_ || pairs_ || is_special(pass)) {
      emit_pass(pass.kind);
    } else if (const KnownPass* known = known_.find(likeness(pass.kind))) {
      repeat_pass(*known);
    } else {
      emit_and_keep(pass.kind);
    }
    if (finishes_gradients(pass.kind)) --backwards_left_[static_cast<size_t>(chunk_)];
    hand_over(ahead);
  }

  // Where the neighbouring model chunk lies. After the last one the micro-batch turns round.
  PassEdge edge(int64_t distance) const {
    const int64_t chunk = model_chunk_ + distance;
    if (chunk < 0) return PassEdge::kNone;
    return chunk >= layout_.chunks() || place(chunk).stage == stage_ ? PassEdge::kOwnStage
                                                                     : PassEdge::kMessage;
  }
  // Of passes in that direction.
  MessageTable& table(int64_t ahead) { return ahead > 0 ? forward_ : backward_; }

  // Whether more than its likeness says what the pass is made of: it has gathers to wait for, the
  // reductions that wait for all of a chunk's gradients, or a head that leaves its own for later.
  bool is_special(const Pass& pass) const {
    const auto chunk = static_cast<size_t>(pass.chunk);
    if (pass.kind == PassKind::kForward) return !gathers_[chunk].empty();
    const bool is_last = finishes_gradients(pass.kind) && backwards_left_[chunk] == 1;
    return is_last || (deferrals_left_ > 0 && !units().empty() && is_head(units().back()));
  }

  PassLikeness likeness(PassKind kind) {
    const std::optional<OpId> source = anchor(Anchor::kSource);
    return {.units = layout_.alike[static_cast<size_t>(model_chunk_)],
            .kind = kind,
            .input = input_,
            .output = output_,
            .source = source ? builder_.op(*source).work : WorkId(),
            .anchors = pattern_of(anchors_)};
  }

  void repeat_pass(const KnownPass& known) {
    const Anchors before = anchors_;
    dependencies_.clear();
    for (const Anchor anchor : known.outer)
      dependencies_.push_back(*before[static_cast<size_t>(anchor)]);
    const OpId first = builder_.add(known.block, dependencies_, micro_batch_, chunk_);
    const auto op = [&](const std::optional<PassOp>& of) {
      return of ? std::optional(of->in(first, before)) : std::nullopt;
    };
    ends_ = {op(known.ends.received), op(known.ends.handed_on), op(known.ends.sent)};
    for (size_t a = 0; a < kAnchors; ++a) anchors_[a] = op(known.anchors_after[a]);
    deferred_.insert(deferred_.end(), known.deferred.begin(), known.deferred.end());
  }

  void emit_and_keep(PassKind kind) {
    const Anchors before = anchors_;
    const OpId first(builder_.size());
    const size_t deferred = deferred_.size();
    KnownPass pass{.like = likeness(kind)};
    emit_pass(kind);
    const auto op = [&](const std::optional<OpId>& of) {
      return of ? std::optional(PassOp::of(*of, first, before)) : std::nullopt;
    };
    pass.block = builder_.block_from(first, known_.size());
    for (const uint32_t d : pass.block.outer)
      pass.outer.push_back(*PassOp::of(pass.block.dependencies[d], first, before).anchor);
    pass.ends = {op(ends_.received), op(ends_.handed_on), op(ends_.sent)};
    for (size_t a = 0; a < kAnchors; ++a) pass.anchors_after[a] = op(anchors_[a]);
    pass.deferred.assign(deferred_.begin() + static_cast<ptrdiff_t>(deferred), deferred_.end());
    known_.add(std::move(pass));
  }

  void emit_pass(PassKind kind) {
    switch (kind) {
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
    std::vector<OpId> start = receive(shared_.receive_forward);
    std::vector<OpId>& gathers = gathers_[static_cast<size_t>(chunk_)];
    const std::vector<UnitKind>& sequence = units();
    for (size_t u = 0; u < sequence.size(); ++u) {
      if (gathers_each_pass()) wait_for(gather_ahead(sequence[u], gathered_from()), start);
      if (!gathers.empty()) start.push_back(gathers[u]);
      const auto unit = static_cast<size_t>(sequence[u]);
      launch(shared_.launch[unit].forward, start);
      start = stamp(shared_.passes[unit].forward, start);
    }
    gathers.clear();  // later micro-batches follow in stream order
    send(shared_.send_forward, start);
  }

  void lower_backward(WorkTemplate PassTemplates::*part, bool input) {
    std::vector<OpId> start;
    if (input) start = receive(shared_.receive_backward);
    const std::vector<UnitKind>& sequence = units();
    const bool weight = part != &PassTemplates::backward_input;
    const bool last = weight && backwards_left_[static_cast<size_t>(chunk_)] == 1;
    const bool gathers = gathers_each_pass() && input;
    std::optional<OpId> gathered;
    if (gathers && !sequence.empty()) gathered = gather_ahead(sequence.back(), gathered_from());
    const bool prefetches = spec_.software.dp_overlap;
    for (size_t u = sequence.size(); u-- > 0;) {
      const UnitKind unit = sequence[u];
      if (gathers) {
        wait_for(gathered, start);
        // Before this unit's reduction, which shares the stream and has to wait for its gradients.
        if (u > 0 && prefetches) gathered = gather_ahead(sequence[u - 1], Anchor::kUnitEnd);
      }
      if (input) launch(shared_.launch[static_cast<size_t>(unit)].backward, start);
      start = stamp(backward_template(unit, part), start);
      if (gathers && u > 0 && !prefetches)
        gathered = gather_ahead(sequence[u - 1], Anchor::kUnitEnd);
      // A unit without a weight pass had its gradients in its input pass, which is before.
      const bool reduces = weight && (last || reduces_each_pass());
      if (reduces && start.empty()) start.push_back(*anchor(Anchor::kUnitEnd));
      if (reduces && reduces_by_unit()) {
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
    if (input) send(shared_.send_backward, start);
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
      set_chunk(head.chunk);
      phase_ = StepPhase::kBackward;
      stamp(shared_.passes[static_cast<size_t>(head.unit)].backward_weight, {});
    }
    if (!deferred_heads_.empty()) reduce(after_heads_, {*anchor(Anchor::kUnitEnd)});
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
    anchor(Anchor::kLaunch) = add(*work, after);
  }

  // After which a pass gathers a unit: beside the unit before it, or else when that is done.
  Anchor gathered_from() const {
    return spec_.software.dp_overlap ? Anchor::kUnitEndBefore : Anchor::kUnitEnd;
  }

  // Issued when the unit before it starts to compute: one unit ahead, as FSDP prefetches. `end`: of
  // the unit before that. Nothing where the unit is not shared out.
  std::optional<OpId> gather_ahead(UnitKind unit, Anchor end) {
    std::vector<OpId> after;
    wait_for(anchor(end), after);
    std::optional<OpId> last;
    for (const WorkId work : shared_.gather[static_cast<size_t>(unit)]) last = add(work, after);
    return last;
  }
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
  std::vector<OpId> receive(WorkId work) {
    if (input_ == PassEdge::kNone) return {};
    if (input_ == PassEdge::kOwnStage) return {*anchor(Anchor::kSource)};
    ends_.received = add(work, {});
    return {shared_.read_message ? add(*shared_.read_message, {*ends_.received}) : *ends_.received};
  }

  void send(WorkId work, const std::vector<OpId>& after) {
    if (output_ == PassEdge::kOwnStage) ends_.handed_on = after.back();
    if (output_ != PassEdge::kMessage) return;
    ends_.sent = add(work, after);
    if (!spec_.software.p2p_async) anchor(Anchor::kBlockingSend) = ends_.sent;
  }

  // Tells those that the pass has to do with which ops they meet.
  void hand_over(int64_t ahead) {
    if (ends_.received) set_start(table(ahead), model_chunk_, *ends_.received);
    const int64_t target = model_chunk_ + ahead;
    if (ends_.handed_on && target >= layout_.chunks()) {
      set_start(backward_, model_chunk_, *ends_.handed_on);
    } else if (ends_.handed_on) {
      set_start(table(ahead), target, *ends_.handed_on);
    }
    if (!ends_.sent) return;
    // The receive may be in a program that does not exist yet: keep the chunk, connect_messages()
    // puts the op.
    const OpId chunk(static_cast<size_t>(target));
    if (PassPair::is_pending(*ends_.sent)) {
      pair_.address(*ends_.sent, place(target), chunk);
    } else {
      address_send(builder_, *ends_.sent, place(target), chunk);
      sends_.push_back(*ends_.sent);
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
      if (s == 0) wait_for(std::exchange(anchor(Anchor::kBlockingSend), {}), dependencies_);
      if (s == last_kernel) wait_for(std::exchange(anchor(Anchor::kLaunch), {}), dependencies_);
      for (const int before : step.after) {
        if (before == kBefore) {
          for (const OpId op : start) depend(op, step.work);
        } else {
          depend(stamped_[static_cast<size_t>(before)], step.work);
        }
      }
      stamped_.push_back(add(step.work, dependencies_));
    }
    anchor(Anchor::kUnitEndBefore) = anchor(Anchor::kUnitEnd);
    anchor(Anchor::kUnitEnd) = stamped_.back();
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
    wait_for(anchor(Anchor::kUnitEnd), computed);
    for (const WorkId work : deferred_) add(work, computed);
    if (shared_.tied_gradients && layout_.holds_one_end(stage_)) add(*shared_.tied_gradients, computed);
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
    const int64_t norms = layout_.norms_at(stage_, spec_.software.norm_reductions_per_layer);
    for (int64_t n = 0; n < norms; ++n) after = {add(*shared_.norm_gradient, n == 0 ? after : std::vector<OpId>{})};
    return after;
  }

  const WorkloadSpec& spec_;
  const StepLayout& layout_;
  const StepWork& shared_;
  const std::vector<ChunkBuckets>& buckets_;
  const TypedVector<WorkId, Work>& works_;
  const int64_t stage_;
  const bool op_by_op_;
  MessageTable& forward_;
  MessageTable& backward_;
  KnownPasses& known_;
  ProgramBuilder builder_;
  std::vector<OpId> sends_;
  // Of the pass that is lowered.
  int32_t micro_batch_ = -1;
  int32_t chunk_ = -1;
  int64_t model_chunk_ = 0;
  StepPhase phase_ = StepPhase::kUnknown;
  PassEdge input_ = PassEdge::kNone, output_ = PassEdge::kNone;
  PassEnds<OpId> ends_;
  Anchors anchors_;
  std::vector<int64_t> backwards_left_;     // by local chunk: passes until its gradients are whole
  std::vector<std::vector<OpId>> gathers_;  // by local chunk: of its units, until the first forward
  std::vector<WorkId> deferred_;            // reductions that wait for the end of the step
  struct DeferredHead {
    UnitKind unit;
    int32_t micro_batch, chunk;
  };
  int64_t deferrals_left_ = 0;
  std::vector<DeferredHead> deferred_heads_;  // whose weight gradients are still to be made
  std::vector<WorkId> after_heads_;           // reductions that wait for them
  std::vector<OpId> stamped_, dependencies_;  // of stamp(), kept for their memory
  bool pairs_ = false;  // while a pair of passes is put together
  bool has_gone_back_ = false;
  PassPair pair_;
};

}  // namespace

StageProgram stage_program(const StageQuestion& question, StepTables& tables) {
  return StageLowering(question, tables).lower(question.optimizer);
}

}  // namespace herdsim
