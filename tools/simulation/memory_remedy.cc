#include "tools/simulation/memory_remedy.h"

#include <algorithm>
#include <string_view>
#include <vector>

#include "sim/base/error.h"
#include "sim/base/text.h"
#include "tools/scenario/check_relations.h"
#include "workloads/lowering.h"
#include "workloads/memory/memory_footprint.h"

namespace herdsim {
namespace {

// A change and how --set writes it. False where it changes nothing.
struct Remedy {
  std::string (*text)(const Scenario& changed);
  bool (*apply)(Scenario&);
};

bool spread(Scenario& s, int64_t ParallelPlan::*degree) {
  if (s.plan.dp % 2 != 0) return false;
  s.plan.dp /= 2;
  s.plan.*degree *= 2;
  return true;
}

std::string set_text(std::string_view field, int64_t value) {
  return std::string(field) + "=" + std::to_string(value);
}

const Remedy kRemedies[] = {
    {[](const Scenario&) { return std::string("training.recompute=FULL"); },
     [](Scenario& s) {
       if (s.training.recompute == Recompute::kFull) return false;
       s.training.recompute = Recompute::kFull;
       return true;
     }},
    {[](const Scenario&) { return std::string("parallel.shard=ZERO1"); },
     [](Scenario& s) {
       if (s.plan.shard != Sharding::kNone) return false;
       s.plan.shard = Sharding::kZero1;
       return true;
     }},
    {[](const Scenario&) { return std::string("parallel.shard=ZERO3"); },
     [](Scenario& s) {
       if (s.plan.shard == Sharding::kZero3) return false;
       s.plan.shard = Sharding::kZero3;
       return true;
     }},
    {[](const Scenario& s) { return set_text("parallel.micro_batch", s.plan.micro_batch); },
     [](Scenario& s) {
       if (s.plan.micro_batch % 2 != 0) return false;
       s.plan.micro_batch /= 2;
       return true;
     }},
    {[](const Scenario& s) {
       return set_text("parallel.tp", s.plan.tp) + " with " + set_text("parallel.dp", s.plan.dp);
     },
     [](Scenario& s) {
       return s.plan.tp < s.cluster.gpus_per_host && spread(s, &ParallelPlan::tp);
     }},
    {[](const Scenario& s) {
       return set_text("parallel.pp", s.plan.pp) + " with " + set_text("parallel.dp", s.plan.dp);
     },
     [](Scenario& s) { return spread(s, &ParallelPlan::pp); }},
    {[](const Scenario& s) {
       return set_text("parallel.cp", s.plan.cp) + " with " + set_text("parallel.dp", s.plan.dp);
     },
     [](Scenario& s) { return spread(s, &ParallelPlan::cp); }},
    {[](const Scenario& s) { return set_text("parallel.ep", s.plan.ep); },
     [](Scenario& s) {
       s.plan.ep *= 2;
       return s.model.is_moe();
     }},
};

bool is_valid(const Scenario& scenario) {
  SpecReport report(scenario.name);
  std::vector<std::string> warnings;
  check_relations(scenario, &report, &warnings);
  try {
    report.throw_if_any();
  } catch (const SpecError&) {
    return false;
  }
  return true;
}

Bytes peak_of(const Scenario& s) {
  const ScheduleRow& schedule = *find_schedule(s.training.schedule);
  const ScheduleShape shape = schedule_shape(s.plan, s.training);
  const auto layouts = layout_stages(s.model, s.plan, schedule);
  Bytes peak;
  for (const StageMemory& stage :
       memory_footprint({s.model, s.plan, s.training, s.software, schedule, shape, layouts})) {
    peak = std::max(peak, stage.peak);
  }
  return peak;
}

// Of the whole job, each parameter once: weight, gradient, optimizer.
double least_state(const Scenario& s) {
  const auto gradient =
      static_cast<double>(bytes_per_element(s.software.gradient_accumulation_type));
  return static_cast<double>(s.model.parameters()) *
         (2 + gradient + s.training.optimizer_state_bytes());
}

std::string text_of(double bytes) { return to_text(Bytes(static_cast<int64_t>(bytes))); }

// The changes that fit, each after what `base` changed already.
std::vector<std::string> that_fit(const Scenario& base, const std::string& before) {
  std::vector<std::string> fit;
  for (const Remedy& remedy : kRemedies) {
    Scenario changed = base;
    if (!remedy.apply(changed) || !is_valid(changed)) continue;
    const Bytes peak = peak_of(changed);
    if (peak > changed.profile.hbm) continue;
    fit.push_back("with " + before + remedy.text(changed) + " (" + to_text(peak) + ")");
  }
  return fit;
}

}  // namespace

std::string memory_remedy(const Scenario& scenario) {
  const auto hbm = static_cast<double>(scenario.profile.hbm.count());
  const double state = least_state(scenario), memory = hbm * static_cast<double>(scenario.gpus);
  if (state > memory) {
    return "no plan fits: " + text_of(state) +
           " of weights, gradients and optimizer state in all, " + text_of(memory) + " of HBM on " +
           std::to_string(scenario.gpus) + " GPUs; " +
           std::to_string(static_cast<int64_t>(state / hbm) + 1) + " GPUs or more hold it";
  }
  std::vector<std::string> fit = that_fit(scenario, "");
  if (fit.empty() && scenario.training.recompute != Recompute::kFull) {
    Scenario recomputes = scenario;
    recomputes.training.recompute = Recompute::kFull;
    fit = that_fit(recomputes, "training.recompute=FULL and ");
  }
  if (fit.empty()) return "no single change makes it fit: it needs more GPUs or another plan";
  std::string text = "fits ";
  for (size_t i = 0; i < fit.size(); ++i) text += (i == 0 ? "" : ", ") + fit[i];
  return text;
}

}  // namespace herdsim
