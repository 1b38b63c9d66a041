#include "workloads/schedules/schedule_timeline.h"

#include <algorithm>

#include "sim/base/check.h"

namespace herdsim {
namespace {

enum class Result : uint8_t { kForward, kInputGradient };

// What a pass waits for: a result of a micro-batch at a model chunk.
struct Need {
  Result result = Result::kForward;
  int64_t micro_batch = 0;
  ChunkPlace place;
};

class Runner {
 public:
  Runner(const ScheduleRow& row, const ScheduleShape& shape,
         const std::vector<std::vector<Pass>>& orders, const PassTimes& times)
      : row_(row),
        shape_(shape),
        orders_(orders),
        times_(times),
        model_chunks_(model_chunks(row, shape)),
        next_(orders.size(), 0),
        free_(orders.size()),
        ends_(static_cast<size_t>(2 * model_chunks_ * shape.micro_batches), Instant::never()) {
    result_.stages.resize(orders.size());
    result_.busy.resize(orders.size());
    for (size_t s = 0; s < orders.size(); ++s) result_.stages[s].reserve(orders[s].size());
  }

  // Each stage runs as far as it can; what it finishes wakes the stages that may have waited for
  // it.
  ScheduleTimeline run() {
    std::vector<size_t> awake(orders_.size());
    for (size_t s = 0; s < awake.size(); ++s) awake[s] = awake.size() - 1 - s;
    std::vector<bool> is_awake(orders_.size(), true);
    while (!awake.empty()) {
      const size_t stage = awake.back();
      awake.pop_back();
      is_awake[stage] = false;
      while (const std::optional<ChunkPlace> wakes = run_next(stage)) {
        const auto other = static_cast<size_t>(wakes->stage);
        if (other == stage || is_awake[other]) continue;
        is_awake[other] = true;
        awake.push_back(other);
      }
    }
    finish();
    return std::move(result_);
  }

 private:
  Instant& end_of(Result result, int64_t micro_batch, int64_t model_chunk) {
    const int64_t index =
        (static_cast<int64_t>(result) * shape_.micro_batches + micro_batch) * model_chunks_ +
        model_chunk;
    return ends_[static_cast<size_t>(index)];
  }

  Duration time_of(PassKind kind) const {
    switch (kind) {
      case PassKind::kForward:
        return times_.forward;
      case PassKind::kBackward:
        return times_.backward_input + times_.backward_weight;
      case PassKind::kBackwardInput:
        return times_.backward_input;
      case PassKind::kBackwardWeight:
        return times_.backward_weight;
    }
    return {};
  }

  int64_t model_chunk_of(size_t stage, const Pass& pass) const {
    return model_chunk_at(row_, shape_, {static_cast<int64_t>(stage), pass.chunk});
  }

  // When a result of a model chunk is there for `stage`; adds what it is if it never comes.
  Instant arrival(Result result, int64_t micro_batch, int64_t model_chunk, size_t stage,
                  std::optional<Need>* missing) {
    const Instant end = end_of(result, micro_batch, model_chunk);
    const ChunkPlace place = place_of_chunk(row_, shape_, micro_batch, model_chunk);
    if (end == Instant::never()) *missing = Need{result, micro_batch, place};
    return place.stage == static_cast<int64_t>(stage) ? end : end + times_.p2p;
  }

  Instant ready(size_t stage, const Pass& pass, std::optional<Need>* missing) {
    const int64_t chunk = model_chunk_of(stage, pass), m = pass.micro_batch;
    switch (pass.kind) {
      case PassKind::kForward:
        return chunk == 0 ? Instant::start()
                          : arrival(Result::kForward, m, chunk - 1, stage, missing);
      case PassKind::kBackward:
      case PassKind::kBackwardInput: {
        const Instant own = arrival(Result::kForward, m, chunk, stage, missing);
        if (*missing || chunk == model_chunks_ - 1) return own;
        return std::max(own, arrival(Result::kInputGradient, m, chunk + 1, stage, missing));
      }
      case PassKind::kBackwardWeight:
        return arrival(Result::kInputGradient, m, chunk, stage, missing);
    }
    return {};
  }

  // Runs the next pass of a stage; where its result is wanted next, or nothing if it cannot run.
  std::optional<ChunkPlace> run_next(size_t stage) {
    if (next_[stage] == orders_[stage].size()) return std::nullopt;
    const Pass pass = orders_[stage][next_[stage]];
    std::optional<Need> missing;
    const Instant start = std::max(free_[stage], ready(stage, pass, &missing));
    if (missing) return std::nullopt;
    const Instant end = start + time_of(pass.kind);
    result_.stages[stage].push_back({pass, start, end});
    result_.busy[stage] += end - start;
    free_[stage] = end;
    ++next_[stage];

    const int64_t chunk = model_chunk_of(stage, pass), m = pass.micro_batch;
    const ChunkPlace here{static_cast<int64_t>(stage), pass.chunk};
    switch (pass.kind) {
      case PassKind::kForward:
        end_of(Result::kForward, m, chunk) = end;
        return chunk + 1 == model_chunks_ ? here : place_of_chunk(row_, shape_, m, chunk + 1);
      case PassKind::kBackward:
      case PassKind::kBackwardInput:
        end_of(Result::kInputGradient, m, chunk) = end;
        return chunk == 0 ? here : place_of_chunk(row_, shape_, m, chunk - 1);
      case PassKind::kBackwardWeight:
        return here;
    }
    return here;
  }

  void finish() {
    Instant last = Instant::start();
    for (size_t stage = 0; stage < orders_.size(); ++stage) {
      last = std::max(last, free_[stage]);
      int64_t held = 0, peak = 0;
      for (const TimedPass& timed : result_.stages[stage]) {
        if (timed.pass.kind == PassKind::kForward) peak = std::max(peak, ++held);
        if (timed.pass.kind == PassKind::kBackward ||
            timed.pass.kind == PassKind::kBackwardWeight) {
          --held;
        }
      }
      result_.in_flight.push_back(peak);
      if (!result_.deadlock && next_[stage] < orders_[stage].size()) {
        const Pass pass = orders_[stage][next_[stage]];
        std::optional<Need> missing;
        ready(stage, pass, &missing);
        HERDSIM_CHECK(missing.has_value()) << "stage " << stage << " stopped without a reason";
        result_.deadlock = {static_cast<int64_t>(stage), pass, missing->place.stage,
                            pass_that_makes(*missing)};
      }
    }
    result_.makespan = last - Instant::start();
  }

  Pass pass_that_makes(const Need& need) const {
    Pass made{PassKind::kForward, static_cast<int32_t>(need.micro_batch),
              static_cast<int32_t>(need.place.chunk)};
    if (need.result == Result::kForward) return made;
    // Whole or split is the order's choice, pass by pass.
    made.kind = PassKind::kBackwardInput;
    const std::vector<Pass>& order = orders_[static_cast<size_t>(need.place.stage)];
    if (std::find(order.begin(), order.end(), made) == order.end()) made.kind = PassKind::kBackward;
    return made;
  }

  const ScheduleRow& row_;
  const ScheduleShape& shape_;
  const std::vector<std::vector<Pass>>& orders_;
  const PassTimes& times_;
  int64_t model_chunks_;
  std::vector<size_t> next_;
  std::vector<Instant> free_;
  std::vector<Instant> ends_;
  ScheduleTimeline result_;
};

}  // namespace

std::string ScheduleDeadlock::text() const {
  const int64_t several = 2;  // names the chunk, which the reader needs to find the pass
  return "stage " + std::to_string(stage) + ": " + describe(pass, several) + " waits for stage " +
         std::to_string(waits_for_stage) + ": " + describe(waits_for, several);
}

Duration ScheduleTimeline::span(int64_t stage) const {
  const std::vector<TimedPass>& passes = stages[static_cast<size_t>(stage)];
  return passes.empty() ? Duration::zero() : passes.back().end - passes.front().start;
}

double ScheduleTimeline::bubble() const {
  size_t longest = 0;
  for (size_t s = 1; s < stages.size(); ++s) {
    if (span(static_cast<int64_t>(s)) > span(static_cast<int64_t>(longest))) longest = s;
  }
  const Duration computes = busy[longest];
  return (span(static_cast<int64_t>(longest)) - computes).seconds() / computes.seconds();
}

ScheduleTimeline time_orders(const ScheduleRow& row, const ScheduleShape& shape,
                             const std::vector<std::vector<Pass>>& orders, const PassTimes& times) {
  return Runner(row, shape, orders, times).run();
}

ScheduleTimeline time_schedule(const ScheduleRow& row, const ScheduleShape& shape,
                               const PassTimes& times) {
  std::vector<std::vector<Pass>> orders;
  for (int64_t stage = 0; stage < shape.stages; ++stage) orders.push_back(row.order(shape, stage));
  return time_orders(row, shape, orders, times);
}

}  // namespace herdsim
