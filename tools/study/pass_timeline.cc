#include "tools/study/pass_timeline.h"

#include <algorithm>
#include <optional>

#include "sim/base/check.h"

namespace herdsim {
namespace {

using Ticks = int64_t;
constexpr Ticks kUnknown = -1;

struct ChunkTransfers {
  LeastTransfer all;
  Ticks first = 0, last = 0;  // in the order of the pass
  Ticks longest = 0;          // of a unit
};

// Layers that recompute, as few as there can be, lie within those that do not: at the edges of a
// pass the shorter times count.
std::vector<Unit> units_of(int64_t layers, double recompute_fraction, bool first, bool last) {
  std::vector<Unit> units;
  if (first) units.push_back(Unit::kEmbedding);
  const auto recomputed = static_cast<size_t>(static_cast<double>(layers) * recompute_fraction);
  const size_t plain = static_cast<size_t>(layers) - recomputed;
  units.insert(units.end(), plain / 2, Unit::kLayer);
  units.insert(units.end(), recomputed, Unit::kRecomputedLayer);
  units.insert(units.end(), plain - plain / 2, Unit::kLayer);
  if (last) units.push_back(Unit::kHead);
  return units;
}

ChunkTimes chain(const std::vector<Unit>& units, const std::array<UnitTimes, kUnits>& times) {
  ChunkTimes chunk;
  for (const Unit unit : units) chunk.add(times[static_cast<size_t>(unit)]);
  return chunk;
}

ChunkTransfers chain(const std::vector<Unit>& units,
                     const std::array<BucketTransfer, kUnits>& times) {
  ChunkTransfers chunk;
  for (const Unit unit : units) {
    const BucketTransfer& one = times[static_cast<size_t>(unit)];
    chunk.all = chunk.all + one.share;
    chunk.longest = std::max(chunk.longest, one.alone);
  }
  chunk.all.time = std::max(chunk.all.time, chunk.longest);
  if (units.empty()) return chunk;
  chunk.first = times[static_cast<size_t>(units.front())].alone;
  chunk.last = times[static_cast<size_t>(units.back())].alone;
  return chunk;
}

Ticks sum_of(const std::vector<Unit>& units, const std::array<Ticks, kUnits>& times) {
  Ticks sum = 0;
  for (const Unit unit : units) sum += times[static_cast<size_t>(unit)];
  return sum;
}

struct Chunk {
  ChunkTimes forward, backward, backward_input, backward_weight;
  ChunkTimes backward_deferring;  // where the head leaves its weight gradient
  ChunkTransfers gather, gather_backward, reduce;
  Ticks launch_forward = 0, launch_backward = 0;
};

// Transfers beside a stage's passes, one at a time.
struct Beside {
  LeastTransfer sum;

  void add(const LeastTransfer& one) { sum = sum + one; }
  // What they take from kernels where so long none runs.
  Ticks taken(Ticks idle) const {
    if (idle >= sum.time) return 0;
    return static_cast<Ticks>(static_cast<double>(sum.taken) *
                              (1 - static_cast<double>(idle) / static_cast<double>(sum.time)));
  }
};

// What a stage's kernels and the transfers beside them ask of its GPU (unit_times.h).
struct Demand {
  std::optional<Ticks> first_kernel;  // starts then at the earliest
  Ticks passes = 0, idle = 0;         // of all
  Ticks ahead = 0, behind = 0;        // of it, before the first kernel and behind the last
  Ticks to_output = 0;                // up to the last kernel that the last pass's output waits for
  Ticks after_kernels = 0;            // from there to the output
  Beside gathers, reductions;
  // Messages that begin after the first kernel. What was sent forward has arrived before the last
  // pass back, which waits for an answer to it.
  Beside received_forward, received_backward, sent_forward, sent_backward;

  void add(const ChunkTimes& pass, Ticks kernel) {
    if (!first_kernel) {
      first_kernel = kernel;
      ahead = pass.ahead();
    }
    to_output = pass.demand_to_output() > 0 ? passes + pass.demand_to_output() : 0;
    passes += pass.demand();
    idle += pass.idle();
    behind = pass.behind();
    after_kernels = pass.after_kernels();
  }
};

struct Stage {
  std::vector<Pass> order;
  size_t next = 0;
  Ticks free = 0;                       // of kernels
  Ticks done = 0;                       // of passes
  Ticks last_output = 0;                // of the last pass
  Ticks last_start = 0;                 // of its first kernel
  Ticks last_demand = 0;
  Ticks launched = 0;                   // by the host: end of what it has launched so far
  Ticks transfers = 0;                  // end of what the data-parallel stream has so far
  Ticks deferred = 0;                   // reductions for the end
  Ticks end = 0;                        // of the step, for what this stage does
  Demand demand;
  std::vector<int64_t> gradients_left;  // by local chunk
  std::vector<Ticks> gathered_first, gathered_all;  // by local chunk, of its first and last unit
  std::vector<bool> ran;                            // by local chunk, forward
};

class PassTimeline {
 public:
  explicit PassTimeline(const TimelineQuestion& q)
      : q_(q),
        micro_batches_(q.shape.micro_batches),
        last_chunk_(static_cast<int64_t>(q.layers.size()) - 1),
        deferrals_left_(q.deferred_heads),
        forward_(q.layers.size() * static_cast<size_t>(micro_batches_), kUnknown),
        backward_(forward_) {
    for (int64_t c = 0; c <= last_chunk_; ++c) chunks_.push_back(chunk(c));
    for (int64_t s = 0; s < q.shape.stages; ++s) stages_.push_back(stage(s));
  }

  Ticks run() {
    for (bool moved = true; moved;) {
      moved = false;
      for (size_t s = 0; s < stages_.size(); ++s) {
        while (stages_[s].next < stages_[s].order.size() && step(static_cast<int64_t>(s))) {
          moved = true;
        }
      }
    }
    for (int64_t s = 0; s < q_.shape.stages; ++s) fill(s);
    const ChunkTimes head = chain({Unit::kHead}, q_.backward_weight);
    Stage& last =
        stages_[static_cast<size_t>(place_of_chunk(q_.row, q_.shape, 0, last_chunk_).stage)];
    const int64_t deferred = q_.deferred_heads - deferrals_left_;
    last.free += deferred * head.occupied();
    if (deferred > 0) last.last_output = std::max(last.last_output, last.free);
    Ticks end = 0;
    for (const Stage& stage : stages_) {
      HERDSIM_CHECK(stage.next == stage.order.size()) << "the schedule deadlocks";
      // Reductions left for the end wait for the last pass's output.
      end = std::max({end, stage.end, stage.free, stage.done,
                      std::max(stage.last_output, stage.transfers) + stage.deferred});
    }
    return end;
  }

 private:
  Chunk chunk(int64_t c) const {
    std::vector<Unit> units = units_of(q_.layers[static_cast<size_t>(c)], q_.recompute_fraction,
                                       c == 0, c == last_chunk_);
    Chunk chunk;
    chunk.forward = chain(units, q_.forward);
    chunk.gather = chain(units, q_.gather);
    chunk.launch_forward = sum_of(units, q_.launch_forward);
    chunk.launch_backward = sum_of(units, q_.launch_backward);
    std::reverse(units.begin(), units.end());
    chunk.backward = chain(units, q_.backward);
    chunk.backward_input = chain(units, q_.backward_input);
    std::array<UnitTimes, kUnits> deferring = q_.backward;
    deferring[static_cast<size_t>(Unit::kHead)] =
        q_.backward_input[static_cast<size_t>(Unit::kHead)];
    chunk.backward_deferring = chain(units, deferring);
    chunk.backward_weight = chain(units, q_.backward_weight);
    chunk.gather_backward = chain(units, q_.gather);
    chunk.reduce = chain(units, q_.reduce);
    return chunk;
  }

  Stage stage(int64_t s) const {
    Stage stage;
    stage.order = q_.row.order(q_.shape, s);
    const auto local = static_cast<size_t>(chunks_per_stage(q_.row, q_.shape));
    stage.gradients_left.assign(local, 0);
    stage.ran.assign(local, false);
    for (const Pass& pass : stage.order) {
      if (pass.kind == PassKind::kBackward || pass.kind == PassKind::kBackwardWeight) {
        ++stage.gradients_left[static_cast<size_t>(pass.chunk)];
      }
    }
    if (q_.gathers_each_pass) {
      stage.gathered_first.assign(local, 0);
      stage.gathered_all.assign(local, 0);
      return stage;
    }
    for (size_t c = 0; c < local; ++c) {
      const auto model_chunk =
          static_cast<size_t>(model_chunk_at(q_.row, q_.shape, {s, static_cast<int64_t>(c)}));
      const ChunkTransfers& gather = chunks_[model_chunk].gather;
      stage.gathered_first.push_back(stage.transfers + gather.first);
      stage.transfers += gather.all.time;
      stage.gathered_all.push_back(stage.transfers);
    }
    if (!q_.overlap)
      stage.gathered_first = stage.gathered_all = std::vector<Ticks>(local, stage.transfers);
    return stage;
  }

  Ticks& slot(std::vector<Ticks>& table, int64_t chunk, int64_t micro_batch) const {
    return table[static_cast<size_t>(chunk * micro_batches_ + micro_batch)];
  }

  LeastTransfer message(int64_t from, int64_t to) const {
    const int64_t distance = std::abs(from - to);
    if (distance == 0) return {};
    return distance == 1 ? q_.next_stage : q_.around;
  }

  // When the input is there; kUnknown while nobody can say. Zero where the stage made it itself.
  Ticks arrival(int64_t stage, int64_t chunk, int64_t from, int64_t micro_batch,
                std::vector<Ticks>& table) {
    const int64_t source = chunk + from;
    if (source < 0 || source > last_chunk_) return 0;
    const Ticks made = slot(table, source, micro_batch);
    if (made == kUnknown) return kUnknown;
    const int64_t there = place_of_chunk(q_.row, q_.shape, micro_batch, source).stage;
    const LeastTransfer sent = message(there, stage);
    if (there != stage) {
      const bool forward = from < 0;
      Demand &sender = stages_[static_cast<size_t>(there)].demand,
             &receiver = stages_[static_cast<size_t>(stage)].demand;
      (forward ? sender.sent_forward : sender.sent_backward).add(sent);
      if (receiver.first_kernel && made >= *receiver.first_kernel) {
        (forward ? receiver.received_forward : receiver.received_backward)
            .add(sent);
      }
    }
    return made + sent.time;
  }

  // When a message brought the input; zero where the stage made it itself.
  Ticks message_of(int64_t stage, int64_t chunk, int64_t from, const Pass& pass, Ticks input) const {
    const int64_t source = chunk + from;
    if (source < 0 || source > last_chunk_) return 0;
    return place_of_chunk(q_.row, q_.shape, pass.micro_batch, source).stage == stage ? 0 : input;
  }

  bool step(int64_t s) {
    Stage& stage = stages_[static_cast<size_t>(s)];
    const Pass pass = stage.order[stage.next];
    const int64_t c = model_chunk_at(q_.row, q_.shape, {s, pass.chunk});
    const Chunk& chunk = chunks_[static_cast<size_t>(c)];
    switch (pass.kind) {
      case PassKind::kForward: {
        const Ticks input = arrival(s, c, -1, pass.micro_batch, forward_);
        if (input == kUnknown) return false;
        slot(forward_, c, pass.micro_batch) = run_forward(stage, pass, chunk, input, message_of(s, c, -1, pass, input));
        break;
      }
      case PassKind::kBackward:
      case PassKind::kBackwardInput: {
        const Ticks input = arrival(s, c, 1, pass.micro_batch, backward_);
        if (input == kUnknown) return false;
        const bool whole = pass.kind == PassKind::kBackward;
        const bool defers = whole && c == last_chunk_ && deferrals_left_ > 0;
        if (defers) --deferrals_left_;
        const ChunkTimes& times = defers  ? chunk.backward_deferring
                                  : whole ? chunk.backward
                                          : chunk.backward_input;
        slot(backward_, c, pass.micro_batch) =
            run_backward(stage, pass, chunk, times, input, message_of(s, c, 1, pass, input), true, whole);
        break;
      }
      case PassKind::kBackwardWeight:
        run_backward(stage, pass, chunk, chunk.backward_weight, 0, 0, false, true);
        break;
    }
    ++stage.next;
    return true;
  }

  // The stage takes as long as all that it has to do.
  void fill(int64_t s) {
    Stage& stage = stages_[static_cast<size_t>(s)];
    const Demand& demand = stage.demand;
    if (!demand.first_kernel) return;
    // Where a stage has neighbours on both sides in both directions, two messages may come at once.
    const bool is_line = q_.row.layout == ChunkLayout::kLoop;
    const Ticks idle = demand.idle * (is_line ? 1 : 2);
    const Ticks begin = *demand.first_kernel - demand.ahead;
    const Ticks messages = demand.received_forward.taken(idle) +
                           demand.received_backward.taken(idle) + demand.sent_forward.taken(idle);
    stage.free = std::max(stage.free, begin + demand.passes + messages - demand.behind);
    if (demand.to_output > 0) {
      const Ticks output = begin + demand.to_output + messages + demand.after_kernels;
      stage.last_output = std::max(stage.last_output, output);
      stage.end = output + drain_after(stage.order.back(), s);
    }
    // By the end of the step, which for gathers begins before the first kernel.
    const Ticks all = demand.passes + messages + demand.sent_backward.taken(idle) +
                      demand.reductions.taken(demand.idle);
    stage.end = std::max({stage.end, begin + all, all + demand.gathers.taken(demand.idle)});
  }

  // From a stage's last pass to the end of the step: the passes before it, which wait for it.
  Ticks drain_after(const Pass& pass, int64_t stage) const {
    if (pass.kind == PassKind::kForward || pass.kind == PassKind::kBackwardWeight) return 0;
    Ticks drain = 0;
    int64_t from = stage;
    for (int64_t c = model_chunk_at(q_.row, q_.shape, {stage, pass.chunk}) - 1; c >= 0; --c) {
      const Chunk& chunk = chunks_[static_cast<size_t>(c)];
      const int64_t to = place_of_chunk(q_.row, q_.shape, pass.micro_batch, c).stage;
      const bool is_whole = pass.kind == PassKind::kBackward;
      drain += message(from, to).time +
               (is_whole ? chunk.backward : chunk.backward_input).whole();
      from = to;
    }
    return drain;
  }

  // When the pass ends; `first_gathered` and `all_gathered` hold back its first and its last unit,
  // gathers that nothing hides add `between` its units. The second of a pair starts behind the
  // first kernel of the first.
  static Ticks run_pass(Stage& stage, const ChunkTimes& times, Ticks input, Ticks first_gathered,
                        Ticks all_gathered, Ticks between = 0, bool is_second = false) {
    if (!times.exists()) {
      stage.demand.to_output = 0;
      return std::max(input, stage.done);
    }
    const Ticks begin = std::max(input, first_gathered);
    const Ticks first_kernel =
        std::max(begin + times.lead(), is_second ? stage.last_start : stage.free);
    const Ticks end =
        std::max({begin + times.whole() + between, first_kernel + times.rest() + between,
                  all_gathered + times.last(), stage.launched});
    const Ticks of_both = is_second ? stage.last_start + stage.last_demand + times.demand() : 0;
    stage.free = std::max({is_second ? stage.free : 0, of_both,
                           first_kernel + times.occupied() + between, stage.launched});
    stage.last_start = first_kernel;
    stage.last_demand = times.demand();
    stage.demand.add(times, first_kernel);
    stage.done = std::max(stage.done, end);
    stage.last_output = end;
    return end;
  }

  // `message`: when the pass's has arrived.
  void launch(Stage& stage, Ticks message, Ticks took) const {
    if (q_.launches_wait) stage.launched = std::max(stage.launched, message);
    stage.launched += took;
  }

  Ticks run_forward(Stage& stage, const Pass& pass, const Chunk& chunk, Ticks input, Ticks message) {
    launch(stage, message, chunk.launch_forward);
    const auto local = static_cast<size_t>(pass.chunk);
    if (!q_.gathers_each_pass) {
      const bool first = !stage.ran[local];
      stage.ran[local] = true;
      return run_pass(stage, chunk.forward, input, first ? stage.gathered_first[local] : 0,
                      first ? stage.gathered_all[local] : 0);
    }
    const Ticks first = first_gathered(stage, chunk.gather);
    stage.transfers += chunk.gather.all.time;
    stage.demand.gathers.add(chunk.gather.all);
    return run_pass(stage, chunk.forward, input, first, stage.transfers, between(chunk.gather));
  }

  // Where nothing hides, each unit is gathered once the one before it is done; of pairs, whose units
  // lie among one another, nothing is said.
  Ticks first_gathered(const Stage& stage, const ChunkTransfers& gather) const {
    const bool hides = q_.overlap || q_.pairs || gather.first == 0;
    return (hides ? stage.transfers : std::max(stage.transfers, stage.free)) + gather.first;
  }
  Ticks between(const ChunkTransfers& gather) const {
    return q_.overlap || q_.pairs ? 0 : std::max<Ticks>(0, gather.all.time - gather.first);
  }

  Ticks run_backward(Stage& stage, const Pass& pass, const Chunk& chunk, const ChunkTimes& times,
                     Ticks input, Ticks message, bool takes_input, bool weights) {
    const bool last = weights && --stage.gradients_left[static_cast<size_t>(pass.chunk)] == 0;
    const bool reduces = last || (weights && q_.reduces_each_pass);
    const bool beside = reduces && q_.overlap;
    Ticks first = 0, all = 0, waits = 0;
    if (takes_input) launch(stage, message, chunk.launch_backward);
    if (q_.gathers_each_pass && takes_input) {
      first = first_gathered(stage, chunk.gather_backward);
      stage.transfers += chunk.gather_backward.all.time;
      stage.demand.gathers.add(chunk.gather_backward.all);
      all = stage.transfers;
      waits = between(chunk.gather_backward);
    }
    const bool is_second = q_.pairs && pass.kind == PassKind::kBackward && stage.next > 0 &&
                           stage.order[stage.next - 1].kind == PassKind::kForward;
    const Ticks end = run_pass(stage, times, input, first, all, waits, is_second);
    if (beside) {
      stage.transfers = std::max(stage.transfers + chunk.reduce.all.time, end + chunk.reduce.last);
      stage.demand.reductions.add(chunk.reduce.all);
    } else if (reduces) {
      stage.deferred += chunk.reduce.all.time;
    }
    return end;
  }

  const TimelineQuestion& q_;
  const int64_t micro_batches_;
  const int64_t last_chunk_;
  int64_t deferrals_left_;
  std::vector<Ticks> forward_, backward_;  // ends, by chunk and micro-batch
  std::vector<Chunk> chunks_;
  std::vector<Stage> stages_;
};

}  // namespace

int64_t run_timeline(const TimelineQuestion& question) { return PassTimeline(question).run(); }

}  // namespace herdsim
