#include "tools/study/plan_study.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>

#include "sim/base/error.h"
#include "sim/base/text.h"
#include "tools/scenario/load_scenario.h"
#include "tools/study/closed_forms.h"

namespace herdsim {
namespace {

std::string scenario_text(const PlanQuestion& q) {
  return fmt::format(
      "name: \"plan\"\nmodel {{ base: \"{}\" }}\ncluster {{ base: \"{}\" }}\n"
      "profile {{ base: \"{}\" }}\nsoftware {{ base: \"{}\" }}\ngpus: 1\n"
      "training {{ sequence_length: 8192 global_batch: 2048 schedule: \"1f1b\" }}\n"
      "reliability {{ base: \"llama3-54-days\" }}\n"
      "checkpoint {{ policy: \"async\" interval_s: 300 }}\n"
      "recovery {{ policy: \"restart-with-spares\" spares: 0 }}\n",
      q.model, q.cluster, q.profile, q.software);
}

Scenario load(const PlanQuestion& q, std::vector<std::string> sets, const std::string& one_more) {
  if (!one_more.empty()) sets.push_back(one_more);
  return load_scenario_text(scenario_text(q), "plan", sets);
}

// The next count to try from `gpus`, itself included.
int64_t count_from(int64_t gpus, int64_t host) {
  if (gpus <= host) return static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(gpus)));
  const auto below = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(gpus)));
  const int64_t step = std::max(host, below / 8);
  return (gpus + step - 1) / step * step;
}

class PlanStudy {
 public:
  explicit PlanStudy(const PlanQuestion& question) : q_(question), sets_(question.sets) {
    pins_ = take_pins(sets_);
    one_gpu_ = load(q_, sets_, "");
    check_against_machine();
    keeps_spares_ = std::any_of(sets_.begin(), sets_.end(), [](const std::string& set) {
      return set.starts_with("recovery.spares=");
    });
  }

  PlanReport report() {
    PlanReport report{.model = q_.model,
                      .cluster = q_.cluster,
                      .gpus_per_host = one_gpu_.cluster.gpus_per_host,
                      .prices = q_.prices,
                      .weak_scaling = q_.weak_scaling,
                      .answers = {},
                      .warnings = one_gpu_.warnings};
    if (q_.gpus.empty()) {
      find_counts(report.answers);
      return report;
    }
    for (const int64_t gpus : q_.gpus) report.answers.push_back(answer(gpus));
    return report;
  }

 private:
  void check_against_machine() const {
    Faults faults;
    for (const int64_t gpus : q_.gpus) {
      if (gpus > one_gpu_.cluster.gpus) {
        faults.add({.field = "--gpus",
                    .problem = fmt::format("{} GPUs are more than the cluster has", gpus),
                    .allowed = fmt::format("1 to {}", one_gpu_.cluster.gpus)});
      }
      const int64_t first = q_.gpus.front();
      if (q_.weak_scaling && one_gpu_.training.global_batch * gpus % first != 0) {
        faults.add({.field = "--weak",
                    .problem = fmt::format("a batch of {} on {} GPUs is no whole number on {}",
                                           one_gpu_.training.global_batch, first, gpus),
                    .allowed = "GPU counts in the ratio of whole batches"});
      }
    }
    const double memory = static_cast<double>(one_gpu_.profile.hbm.count()) * 1e-9;
    if (q_.memory_gigabytes > memory) {
      faults.add({.field = "--memory-gigabytes",
                  .problem = fmt::format("{} GB are more than the GPU has", q_.memory_gigabytes),
                  .allowed = fmt::format("0 to {:.1f}", memory)});
    }
    faults.throw_if_any();
  }

  Scenario base_for(Scenario base, int64_t gpus) const {
    base.gpus = gpus;
    if (q_.weak_scaling && !q_.gpus.empty()) {
      base.training.global_batch = base.training.global_batch * gpus / q_.gpus.front();
    }
    if (q_.memory_gigabytes > 0) {
      base.profile.hbm = Bytes(static_cast<int64_t>(q_.memory_gigabytes * 1e9));
    }
    return base;
  }

  PlanSearch search(const Scenario& base, const PlanPins& pins, int64_t keep) const {
    PlanOptions options{.keep = keep, .threads = q_.threads};
    if (q_.progress) {
      options.progress = [&](int64_t settled, int64_t of) { q_.progress(settled, of, base.gpus); };
    }
    return search_plans(base, pins, options);
  }

  PlanAnswer searched(int64_t gpus) {
    const Scenario base = base_for(one_gpu_, gpus);
    PlanAnswer answer;
    answer.global_batch = base.training.global_batch;
    answer.search = search(base, pins_, q_.keep);
    if (!answer.search.best.empty()) {
      if (!first_) first_ = answer.search.best.front();
      return answer;
    }
    answer.missed.push_back({"plan", 0, 0, "a plan that fits"});
    if (answer.search.candidates == 0) answer.gpus_with_plans = gpus_with_plans_near(base, pins_);
    return answer;
  }

  PlanAnswer answer(int64_t gpus) {
    PlanAnswer answer = searched(gpus);
    complete(answer);
    return answer;
  }

  // What training takes, what is not met, and the whiteboard. A range takes dozens of steps.
  void complete(PlanAnswer& answer, bool with_range = true) const {
    if (answer.search.best.empty()) return;
    const Scenario base = base_for(one_gpu_, answer.search.gpus);
    const RankedPlan& best = answer.search.best.front();
    if (q_.tokens > 0 && !answer.cost) add_cost(base, best, answer, with_range);
    if (!q_.formulas) return;
    answer.formulas = formula_sheet(base, best, answer.cost ? &*answer.cost : nullptr,
                                    first_ ? &*first_ : nullptr);
    for (Decision& decision : answer.formulas->decision) judge(base, best, decision);
  }

  // What the simulation says of the parallelism that the whiteboard weighs.
  void judge(const Scenario& base, const RankedPlan& best, Decision& decision) const {
    if (!decision.weighed) return;
    const PlanSearch found = search(base, *decision.weighed, 1);
    if (found.candidates == 0) {
      decision.simulated = "there is none: nothing divides the GPUs and the batch so";
    } else if (found.best.empty()) {
      decision.simulated = fmt::format("none fits: the closest takes {} of {} a GPU",
                                       to_text(found.closest->stage.peak), to_text(found.capacity));
    } else {
      const RankedPlan& plan = found.best.front();
      const double longer = plan.step.step_time.seconds() / best.step.step_time.seconds() - 1;
      decision.simulated =
          fmt::format("its best, {}, takes {:.3f} s, {:.1f} % more than the first",
                      plan.candidate.text(), plan.step.step_time.seconds(), 100 * longer);
    }
  }

  void add_cost(const Scenario& base, const RankedPlan& best, PlanAnswer& answer,
                bool with_range) const {
    CostQuestion question{.tokens = q_.tokens,
                          .prices = q_.prices,
                          .availability = q_.availability,
                          .keep_spares = keeps_spares_,
                          .variant = {},
                          .threads = q_.threads};
    if (with_range) {
      question.variant = [&](const std::string& set) {
        return scenario_of(base_for(load(q_, sets_, set), base.gpus), best.candidate);
      };
    }
    answer.cost = cost_of(scenario_of(base, best.candidate), best.step, question);
    const PlanCost& cost = *answer.cost;
    const auto over = [](double has, double allowed) {
      return fmt::format("{:.0f} %", 100 * (has / allowed - 1));
    };
    if (q_.deadline_days > 0 && cost.days > q_.deadline_days) {
      answer.missed.push_back(
          {"deadline_days", cost.days, q_.deadline_days,
           fmt::format("{:.1f} days, {:.1f} ({}) over the {} allowed; at this pace a GPU, {} "
                       "GPUs would do",
                       cost.days, cost.days - q_.deadline_days, over(cost.days, q_.deadline_days),
                       q_.deadline_days,
                       count_text(static_cast<int64_t>(gpus_at_this_pace(answer)) + 1))});
    }
    if (q_.budget_usd > 0 && cost.dollars > q_.budget_usd) {
      answer.missed.push_back({"budget_usd", cost.dollars, q_.budget_usd,
                               fmt::format("${:.0f}, {:.0f} ({}) over the {:.0f} allowed",
                                           cost.dollars, cost.dollars - q_.budget_usd,
                                           over(cost.dollars, q_.budget_usd), q_.budget_usd)});
    }
  }

  double gpus_at_this_pace(const PlanAnswer& answer) const {
    return static_cast<double>(answer.search.gpus) * answer.cost->days / q_.deadline_days;
  }

  int64_t fewest_for_state() const {
    const Scenario base = base_for(one_gpu_, 1);
    return least_gpus_for_state(static_cast<double>(base.model.parameters()), base.profile.hbm);
  }

  // Both answers where no count was given.
  void find_counts(std::vector<PlanAnswer>& answers) {
    const int64_t host = one_gpu_.cluster.gpus_per_host, all = one_gpu_.cluster.gpus;
    PlanAnswer fits;
    for (int64_t gpus = count_from(std::min(fewest_for_state(), all), host); gpus <= all;
         gpus = count_from(gpus + 1, host)) {
      PlanAnswer tried = searched(gpus);
      // Counts that nothing divides say nothing of memory.
      const bool is_better = fits.search.candidates == 0 || tried.search.candidates > 0;
      if (is_better) fits = std::move(tried);
      if (!fits.search.best.empty()) break;
    }
    fits.asked = "the fewest GPUs that hold the model";
    complete(fits, q_.deadline_days <= 0);
    answers.push_back(std::move(fits));
    const PlanAnswer& first = answers.front();
    if (q_.deadline_days <= 0 || !first.cost || first.cost->days <= q_.deadline_days) return;
    answers.push_back(fewest_in_time(first, host, all));
  }

  bool is_in_time(const PlanAnswer& answer) const {
    return answer.cost && answer.cost->days <= q_.deadline_days;
  }

  // Up from what the pace of the smallest job asks for until a count is in time, then down from
  // there as long as the pace a GPU promises one that is.
  PlanAnswer fewest_in_time(const PlanAnswer& from, int64_t host, int64_t all) {
    PlanAnswer best;
    int64_t too_few = from.search.gpus;
    double least = gpus_at_this_pace(from);
    for (;;) {
      const int64_t next =
          count_from(std::max(too_few + 1, static_cast<int64_t>(std::ceil(least))), host);
      const bool is_found = is_in_time(best);
      if (is_found && next >= best.search.gpus) break;
      if (too_few >= all) break;
      const int64_t gpus = std::min(next, all);
      PlanAnswer tried = searched(gpus);
      if (!tried.search.best.empty()) complete(tried);
      const bool is_late = !is_in_time(tried);
      if (is_late) too_few = gpus;
      if (tried.cost) least = gpus_at_this_pace(tried);
      // What comes closest, until one is in time.
      const bool is_closer = !is_found && (tried.cost || !best.cost);
      if (!is_late || is_closer) best = std::move(tried);
    }
    best.asked = fmt::format("the fewest GPUs in {} days", q_.deadline_days);
    return best;
  }

  const PlanQuestion& q_;  // Must outlive this object.
  std::vector<std::string> sets_;
  PlanPins pins_;
  Scenario one_gpu_;
  bool keeps_spares_ = false;
  std::optional<RankedPlan> first_;  // of the first GPU count that has one
};

}  // namespace

Scenario plan_base(const PlanQuestion& question, PlanPins& pins) {
  std::vector<std::string> sets = question.sets;
  pins = take_pins(sets);
  return load(question, std::move(sets), "");
}

PlanReport plan_study(const PlanQuestion& question) { return PlanStudy(question).report(); }

}  // namespace herdsim
