#include "tools/study/pass_timeline.h"

#include <algorithm>

#include "sim/base/check.h"

namespace herdsim {
namespace {

using Ticks = int64_t;
constexpr Ticks kUnknown = -1;

// A pass of a whole chunk.
struct ChunkTimes {
  Ticks lead = 0, whole = 0, rest = 0, occupied = 0;
  Ticks last = 0;  // `whole` of the last unit
  bool exists = false;
};

struct ChunkTransfers {
  Ticks all = 0, first = 0, last = 0;  // in the order of the pass
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
  for (const Unit unit : units) {
    const UnitTimes& u = times[static_cast<size_t>(unit)];
    if (!u.exists) continue;
    if (!chunk.exists) {
      chunk = {.lead = u.lead,
               .whole = u.whole,
               .rest = u.rest,
               .occupied = u.occupied,
               .last = u.whole,
               .exists = true};
      continue;
    }
    chunk.occupied = chunk.rest + u.tail;
    chunk.whole += u.whole;
    chunk.rest += u.whole;
    chunk.last = u.whole;
  }
  return chunk;
}

ChunkTransfers chain(const std::vector<Unit>& units, const std::array<Ticks, kUnits>& times) {
  ChunkTransfers chunk;
  for (const Unit unit : units) chunk.all += times[static_cast<size_t>(unit)];
  if (units.empty()) return chunk;
  chunk.first = times[static_cast<size_t>(units.front())];
  chunk.last = times[static_cast<size_t>(units.back())];
  return chunk;
}

struct Chunk {
  ChunkTimes forward, backward, backward_input, backward_weight;
  ChunkTimes backward_deferring;  // where the head leaves its weight gradient
  ChunkTransfers gather, gather_backward, reduce;
  Ticks launch_forward = 0, launch_backward = 0;
};

struct Stage {
  std::vector<Pass> order;
  size_t next = 0;
  Ticks free = 0;                       // of kernels
  Ticks done = 0;                       // of passes
  Ticks launched = 0;                   // by the host: end of what it has launched so far
  Ticks transfers = 0;                  // end of what the data-parallel stream has so far
  Ticks deferred = 0;                   // reductions for the end
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
    const ChunkTimes head = chain({Unit::kHead}, q_.backward_weight);
    Stage& last =
        stages_[static_cast<size_t>(place_of_chunk(q_.row, q_.shape, 0, last_chunk_).stage)];
    last.free += (q_.deferred_heads - deferrals_left_) * head.occupied;
    last.done = std::max(last.done, last.free);
    Ticks end = 0;
    for (const Stage& stage : stages_) {
      HERDSIM_CHECK(stage.next == stage.order.size()) << "the schedule deadlocks";
      end = std::max(end, std::max(stage.done, stage.transfers) + stage.deferred);
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
    chunk.launch_forward = chain(units, q_.launch_forward).all;
    chunk.launch_backward = chain(units, q_.launch_backward).all;
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
      stage.transfers += gather.all;
      stage.gathered_all.push_back(stage.transfers);
    }
    if (!q_.overlap)
      stage.gathered_first = stage.gathered_all = std::vector<Ticks>(local, stage.transfers);
    return stage;
  }

  Ticks& slot(std::vector<Ticks>& table, int64_t chunk, int64_t micro_batch) const {
    return table[static_cast<size_t>(chunk * micro_batches_ + micro_batch)];
  }

  // When the input is there; kUnknown while nobody can say. Zero where the stage made it itself.
  Ticks arrival(int64_t stage, int64_t chunk, int64_t from, int64_t micro_batch,
                std::vector<Ticks>& table) const {
    const int64_t source = chunk + from;
    if (source < 0 || source > last_chunk_) return 0;
    const Ticks made = slot(table, source, micro_batch);
    if (made == kUnknown) return kUnknown;
    const int64_t there = place_of_chunk(q_.row, q_.shape, micro_batch, source).stage;
    const int64_t distance = std::abs(there - stage);
    if (distance == 0) return 0;
    return made + (distance == 1 ? q_.next_stage : q_.around);
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
        slot(forward_, c, pass.micro_batch) = run_forward(stage, pass, chunk, input);
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
            run_backward(stage, pass, chunk, times, input, true, whole);
        break;
      }
      case PassKind::kBackwardWeight:
        run_backward(stage, pass, chunk, chunk.backward_weight, 0, false, true);
        break;
    }
    ++stage.next;
    return true;
  }

  // When the pass ends; `first_gathered` and `all_gathered` hold back its first and its last unit.
  static Ticks run_pass(Stage& stage, const ChunkTimes& times, Ticks input, Ticks first_gathered,
                        Ticks all_gathered) {
    if (!times.exists) return std::max(input, stage.done);
    const Ticks begin = std::max(input, first_gathered);
    const Ticks first_kernel = std::max(begin + times.lead, stage.free);
    const Ticks end = std::max({begin + times.whole, first_kernel + times.rest,
                                all_gathered + times.last, stage.launched});
    stage.free = std::max(first_kernel + times.occupied, stage.launched);
    stage.done = std::max(stage.done, end);
    return end;
  }

  void launch(Stage& stage, Ticks input, Ticks took) const {
    if (q_.launches_wait) stage.launched = std::max(stage.launched, input);
    stage.launched += took;
  }

  Ticks run_forward(Stage& stage, const Pass& pass, const Chunk& chunk, Ticks input) {
    launch(stage, input, chunk.launch_forward);
    const auto local = static_cast<size_t>(pass.chunk);
    if (!q_.gathers_each_pass) {
      const bool first = !stage.ran[local];
      stage.ran[local] = true;
      return run_pass(stage, chunk.forward, input, first ? stage.gathered_first[local] : 0,
                      first ? stage.gathered_all[local] : 0);
    }
    const Ticks first = stage.transfers + chunk.gather.first;
    stage.transfers += chunk.gather.all;
    return run_pass(stage, chunk.forward, input, first, stage.transfers);
  }

  Ticks run_backward(Stage& stage, const Pass& pass, const Chunk& chunk, const ChunkTimes& times,
                     Ticks input, bool takes_input, bool weights) {
    const bool last = weights && --stage.gradients_left[static_cast<size_t>(pass.chunk)] == 0;
    const bool reduces = last || (weights && q_.reduces_each_pass);
    const bool beside = reduces && q_.overlap;
    Ticks first = 0, all = 0;
    if (takes_input) launch(stage, input, chunk.launch_backward);
    if (q_.gathers_each_pass && takes_input) {
      first = stage.transfers + chunk.gather_backward.first;
      stage.transfers += chunk.gather_backward.all;
      all = stage.transfers;
    }
    const Ticks end = run_pass(stage, times, input, first, all);
    if (beside) {
      stage.transfers = std::max(stage.transfers + chunk.reduce.all, end + chunk.reduce.last);
    } else if (reduces) {
      stage.deferred += chunk.reduce.all;
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
