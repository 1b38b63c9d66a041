#include "tools/study/plan_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <queue>
#include <tuple>

#include "sim/base/error.h"
#include "tools/simulation/simulate_step.h"
#include "tools/study/least_memory.h"
#include "tools/study/parallel_for.h"
#include "tools/study/step_bound.h"
#include "workloads/lowering.h"
#include "workloads/memory/memory_footprint.h"
#include "workloads/stage_layout.h"

namespace herdsim {
namespace {

// Large enough to keep cores busy, small beside the number of simulations a search needs.
constexpr size_t kRound = 16;
StageMemory largest_stage(const Scenario& base, const PlanCandidate& c) {
  Training training = base.training;
  training.recompute = c.recompute;
  training.schedule = c.schedule->name;
  const ScheduleShape shape = schedule_shape(c.plan, training);
  const auto layouts = layout_stages(base.model, c.plan, *c.schedule);
  const MemoryQuestion question{base.model,  c.plan, training, base.software,
                                *c.schedule, shape,  layouts};
  StageMemory largest;
  for (int64_t stage = 0; stage < c.plan.pp; ++stage) {
    StageMemory memory = stage_memory(question, stage);
    if (stage == 0 || memory.peak > largest.peak) largest = std::move(memory);
  }
  return largest;
}

// What a candidate waits with, from the cheapest to the tightest; see step_bound.h.
enum class Bound : uint8_t { kQuick, kPasses, kTimeline };

struct Waiting {
  Duration bound;
  size_t candidate = 0;
  Bound by = Bound::kQuick;

  // The least bound first; equals in the order of the space.
  bool operator<(const Waiting& other) const {
    return std::tie(other.bound, other.candidate) < std::tie(bound, candidate);
  }
};

class Search {
 public:
  Search(const Scenario& base, const PlanPins& pins, const PlanOptions& options)
      : base_(base),
        options_(options),
        whole_space_(plan_space(base, pins)),
        space_(fitting(base, whole_space_)),
        bounds_(base, space_) {
    result_.gpus = base.gpus;
    result_.capacity = base.profile.hbm;
    result_.candidates = static_cast<int64_t>(whole_space_.size());
    result_.over_least_memory = static_cast<int64_t>(whole_space_.size() - space_.size());
  }

  PlanSearch run() {
    admit();
    while (!queue_.empty() && queue_.top().bound <= to_beat()) {
      take_round();
      settle_round();
      report();
    }
    for (; !queue_.empty(); queue_.pop()) {
      ++(queue_.top().by == Bound::kQuick ? result_.outbid_by_quick : result_.outbid_by_timeline);
    }
    if (result_.best.empty() && !whole_space_.empty()) find_closest();
    return std::move(result_);
  }

 private:
  struct Settled {
    std::optional<Waiting> waits;  // with a tighter bound
    bool fits = false;
    std::optional<StepResult> step;
  };

  Duration to_beat() const {
    const bool full = static_cast<int64_t>(result_.best.size()) >= options_.keep;
    return full ? result_.best.back().step.step_time : Duration::infinite();
  }

  // Whose least memory fits.
  static std::vector<PlanCandidate> fitting(const Scenario& base,
                                            const std::vector<PlanCandidate>& all) {
    std::vector<PlanCandidate> some;
    LeastMemory memory(base);
    std::copy_if(all.begin(), all.end(), std::back_inserter(some),
                 [&](const PlanCandidate& c) { return memory.of(c) <= base.profile.hbm; });
    return some;
  }

  void admit() {
    std::vector<Waiting> waiting(space_.size());
    parallel_for(space_.size(), options_.threads, [&](size_t i) {
      waiting[i] = {bounds_.quick(space_[i]), i, Bound::kQuick};
    });
    queue_ = std::priority_queue<Waiting>(std::less<Waiting>(), std::move(waiting));
  }

  void take_round() {
    round_.clear();
    while (round_.size() < kRound && !queue_.empty() && queue_.top().bound <= to_beat()) {
      round_.push_back(queue_.top());
      queue_.pop();
    }
    settled_.assign(round_.size(), {});
    parallel_for(round_.size(), options_.threads,
                 [&](size_t i) { settle(round_[i], settled_[i]); });
  }

  void settle(const Waiting& waiting, Settled& out) {
    const PlanCandidate& c = space_[waiting.candidate];
    const auto wait = [&](Duration tighter, Bound by) {
      out.waits = Waiting{std::max(waiting.bound, tighter), waiting.candidate, by};
    };
    switch (waiting.by) {
      case Bound::kQuick:
        return wait(bounds_.passes(c), Bound::kPasses);
      case Bound::kPasses:
        return wait(bounds_.timeline(c), Bound::kTimeline);
      case Bound::kTimeline:
        out.fits = largest_stage(base_, c).peak <= base_.profile.hbm;
        if (out.fits)
          out.step = simulate_step(scenario_of(base_, c), {.result_alone = true}, machines_).result;
    }
  }

  void settle_round() {
    for (size_t i = 0; i < round_.size(); ++i) {
      Settled& settled = settled_[i];
      if (settled.waits) {
        queue_.push(*settled.waits);
      } else if (!settled.fits) {
        ++result_.over_walked_memory;
      } else {
        ++result_.simulated;
        rank(round_[i].candidate, std::move(*settled.step));
      }
    }
  }

  void rank(size_t candidate, StepResult step) {
    const auto place = std::make_pair(step.step_time, candidate);
    size_t at = 0;
    while (at < ranked_.size() && ranked_[at] < place) ++at;
    if (at >= static_cast<size_t>(options_.keep)) return;
    ranked_.insert(ranked_.begin() + static_cast<ptrdiff_t>(at), place);
    result_.best.insert(result_.best.begin() + static_cast<ptrdiff_t>(at),
                        {space_[candidate], std::move(step)});
    if (ranked_.size() > static_cast<size_t>(options_.keep)) {
      ranked_.pop_back();
      result_.best.pop_back();
    }
  }

  void report() const {
    if (!options_.progress) return;
    options_.progress(result_.candidates - static_cast<int64_t>(queue_.size()), result_.candidates);
  }

  // In the order of the least each can take, until no bound is below the least peak found.
  void find_closest() {
    std::vector<std::pair<Bytes, size_t>> order;
    LeastMemory memory(base_);
    for (size_t i = 0; i < whole_space_.size(); ++i)
      order.push_back({memory.of(whole_space_[i]), i});
    std::sort(order.begin(), order.end());
    for (const auto& [least, i] : order) {
      if (result_.closest && least >= result_.closest->stage.peak) break;
      StageMemory stage = largest_stage(base_, whole_space_[i]);
      if (!result_.closest || stage.peak < result_.closest->stage.peak) {
        result_.closest = ClosestPlan{whole_space_[i], std::move(stage)};
      }
    }
  }

  const Scenario& base_;
  const PlanOptions& options_;
  const std::vector<PlanCandidate> whole_space_;
  const std::vector<PlanCandidate> space_;  // without what cannot fit
  const StepBounds bounds_;
  MachineMemo machines_;
  std::priority_queue<Waiting> queue_;
  std::vector<Waiting> round_;
  std::vector<Settled> settled_;
  std::vector<std::pair<Duration, size_t>> ranked_;  // as result_.best
  PlanSearch result_;
};

}  // namespace

PlanSearch search_plans(const Scenario& base, const PlanPins& pins, const PlanOptions& options) {
  return Search(base, pins, options).run();
}

std::string largest_loss(const StepResult& step) {
  const auto account = step.time_account_seconds();
  size_t largest = static_cast<size_t>(TimeTerm::kMemoryBound);
  for (size_t term = largest + 1; term < kTimeTerms; ++term) {
    if (account[term] > account[largest]) largest = term;
  }
  return fmt::format("{} {:.1f} %", kTimeTermNames[largest],
                     100 * account[largest] / step.step_time.seconds());
}

}  // namespace herdsim
