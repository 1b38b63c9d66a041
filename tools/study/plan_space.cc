#include "tools/study/plan_space.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "sim/base/error.h"
#include "workloads/lowering.h"
#include "workloads/stage_layout.h"

namespace herdsim {
namespace {

constexpr std::array<std::pair<std::string_view, Sharding>, 5> kShards = {
    {{"NONE", Sharding::kNone},
     {"ZERO1", Sharding::kZero1},
     {"ZERO2", Sharding::kZero2},
     {"ZERO3", Sharding::kZero3},
     {"FSDP_KEEP", Sharding::kFsdpKeep}}};
constexpr std::array<std::pair<std::string_view, Recompute>, 3> kRecomputes = {
    {{"NONE", Recompute::kNone}, {"SELECTIVE", Recompute::kSelective}, {"FULL", Recompute::kFull}}};

template <class Table, class Value>
std::string_view name_in(const Table& table, Value value) {
  return std::find_if(table.begin(), table.end(),
                      [&](const auto& row) { return row.second == value; })
      ->first;
}

std::vector<int64_t> divisors_up_to(int64_t n, int64_t most) {
  std::vector<int64_t> divisors;
  for (int64_t d = 1; d <= std::min(n, most); ++d) {
    if (n % d == 0) divisors.push_back(d);
  }
  return divisors;
}

bool pinned_out(const std::optional<int64_t>& pin, int64_t value) { return pin && *pin != value; }

class Space {
 public:
  Space(const Scenario& base, const PlanPins& pins) : base_(base), pins_(pins) {}

  std::vector<PlanCandidate> enumerate() {
    PlanCandidate c;
    c.plan = base_.plan;
    c.plan.layers_per_chunk.clear();
    for (const int64_t tp : divisors_up_to(base_.gpus, base_.cluster.gpus_per_host)) {
      if (pinned_out(pins_.tp, tp) || !splits_by_tensor(tp)) continue;
      c.plan.tp = tp;
      c.plan.sequence_parallel = tp > 1 && base_.plan.sequence_parallel;
      for (const int64_t cp : divisors_up_to(base_.gpus / tp, base_.training.sequence_length / 2)) {
        if (pinned_out(pins_.cp, cp) || !splits_by_context(tp, cp)) continue;
        c.plan.cp = cp;
        for (const int64_t pp : divisors_up_to(base_.gpus / (tp * cp), base_.model.layers + 2)) {
          if (pinned_out(pins_.pp, pp)) continue;
          c.plan.pp = pp;
          c.plan.dp = base_.gpus / (tp * cp * pp);
          if (pinned_out(pins_.dp, c.plan.dp)) continue;
          add_micro_batches(c);
        }
      }
    }
    return std::move(out_);
  }

 private:
  bool splits_by_tensor(int64_t tp) const {
    const ModelArchitecture& m = base_.model;
    return m.heads % tp == 0 && m.ffn % tp == 0 && m.hidden % tp == 0 && m.vocab % tp == 0 &&
           (m.kv_heads % tp == 0 || tp % m.kv_heads == 0);
  }
  bool splits_by_context(int64_t tp, int64_t cp) const {
    const int64_t length = base_.training.sequence_length;
    return (cp == 1 || length % (2 * cp) == 0) && (tp == 1 || length / cp % tp == 0);
  }

  void add_micro_batches(PlanCandidate& c) {
    const int64_t batch = base_.training.global_batch;
    if (batch % c.plan.dp != 0) return;
    if (base_.model.is_moe() && c.plan.dp % c.plan.expert_dp() != 0) return;
    if (c.plan.is_hybrid() && c.plan.dp % c.plan.dp_shard != 0) return;
    for (const int64_t size : divisors_up_to(batch / c.plan.dp, batch)) {
      if (pinned_out(pins_.micro_batch, size)) continue;
      c.plan.micro_batch = size;
      add_schedules(c);
    }
  }

  void add_schedules(PlanCandidate& c) {
    for (const ScheduleRow& row : schedules()) {
      if (!pins_.schedule.empty() ? row.name != pins_.schedule
                                  : c.plan.pp == 1 && row.name != "1f1b") {
        continue;
      }
      c.schedule = &row;
      if (!row.uses_virtual_stages) {
        c.plan.virtual_stages = 1;
        add_if_valid(c);
        continue;
      }
      const int64_t layers = base_.model.layers;
      for (int64_t v = 2; v * c.plan.pp <= layers + 2; ++v) {
        const int64_t chunks = v * c.plan.pp;
        if (layers % chunks != 0 && (layers + 2) % chunks != 0) continue;
        c.plan.virtual_stages = v;
        add_if_valid(c);
      }
    }
  }

  // Parameters that are gathered once and gradients that are reduced once are ZeRO-1 under another
  // name: the same step, the same memory.
  static bool is_searched(Sharding shard, bool alone) {
    return alone ? shard == Sharding::kZero1 : shard != Sharding::kFsdpKeep;
  }

  void add_if_valid(PlanCandidate& c) {
    if (pinned_out(pins_.virtual_stages, c.plan.virtual_stages)) return;
    Faults faults;
    c.schedule->validate(schedule_shape(c.plan, base_.training), faults);
    if (faults.empty()) validate_stage_layout(base_.model, c.plan, *c.schedule, faults);
    if (!faults.empty()) return;
    const bool alone = c.plan.dp * c.plan.cp == 1;
    for (const auto& [shard_name, shard] : kShards) {
      if (pins_.shard ? shard != *pins_.shard : !is_searched(shard, alone)) continue;
      c.plan.shard = shard;
      for (const auto& [recompute_name, recompute] : kRecomputes) {
        if (pins_.recompute && recompute != *pins_.recompute) continue;
        c.recompute = recompute;
        out_.push_back(c);
      }
    }
  }

  const Scenario& base_;
  const PlanPins& pins_;
  std::vector<PlanCandidate> out_;
};

[[noreturn]] void reject(const std::string& set, std::string allowed, std::string nearest = "") {
  throw SpecError({{.file = "--set " + set.substr(0, 200),
                    .problem = "is no value to hold fixed",
                    .allowed = std::move(allowed),
                    .nearest = std::move(nearest)}});
}

template <class Table, class Value>
void pin_name(const Table& table, const std::string& set, std::string_view text,
              std::optional<Value>& pin) {
  std::vector<std::string> names;
  for (const auto& [name, value] : table) {
    names.emplace_back(name);
    if (name == text) pin = value;
  }
  if (!pin) reject(set, fmt::format("{}", fmt::join(names, ", ")), nearest_name(text, names));
}

void pin_number(const std::string& set, std::string_view text, std::optional<int64_t>& pin) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 1) {
    reject(set, "a whole number from 1");
  }
  pin = value;
}

// True where the set was a pin.
bool take_pin(const std::string& set, PlanPins& pins) {
  const size_t equals = set.find('=');
  if (equals == std::string::npos) return false;
  const std::string_view path = std::string_view(set).substr(0, equals);
  const std::string_view value = std::string_view(set).substr(equals + 1);
  const std::array<std::pair<std::string_view, std::optional<int64_t>*>, 6> numbers = {
      {{"parallel.tp", &pins.tp},
       {"parallel.cp", &pins.cp},
       {"parallel.pp", &pins.pp},
       {"parallel.dp", &pins.dp},
       {"parallel.virtual_stages", &pins.virtual_stages},
       {"parallel.micro_batch", &pins.micro_batch}}};
  for (const auto& [name, pin] : numbers) {
    if (path != name) continue;
    pin_number(set, value, *pin);
    return true;
  }
  if (path == "parallel.shard") {
    pin_name(kShards, set, value, pins.shard);
  } else if (path == "training.recompute") {
    pin_name(kRecomputes, set, value, pins.recompute);
  } else if (path == "training.schedule") {
    if (find_schedule(value) == nullptr) {
      reject(set, fmt::format("{}", fmt::join(schedule_names(), ", ")),
             nearest_name(value, schedule_names()));
    }
    pins.schedule = value;
  } else {
    return false;
  }
  return true;
}

}  // namespace

std::string PlanCandidate::text() const {
  std::string text = fmt::format("TP{} CP{} PP{} DP{}", plan.tp, plan.cp, plan.pp, plan.dp);
  if (plan.virtual_stages > 1) text += fmt::format(" v{}", plan.virtual_stages);
  text += fmt::format(" mb{} {}", plan.micro_batch, name_in(kShards, plan.shard));
  if (recompute != Recompute::kNone)
    text += fmt::format(" recompute {}", name_in(kRecomputes, recompute));
  if (plan.pp > 1) text += fmt::format(" {}", schedule->name);
  return text;
}

PlanPins take_pins(std::vector<std::string>& sets) {
  PlanPins pins;
  std::erase_if(sets, [&](const std::string& set) { return take_pin(set, pins); });
  return pins;
}

std::vector<PlanCandidate> plan_space(const Scenario& base, const PlanPins& pins) {
  return Space(base, pins).enumerate();
}

std::vector<int64_t> gpus_with_plans_near(const Scenario& base, const PlanPins& pins) {
  const int64_t host = std::min(base.gpus, base.cluster.gpus_per_host);
  const int64_t most = std::min(2 * base.gpus, base.cluster.gpus);
  std::vector<int64_t> near;
  const auto has_plans = [&](int64_t gpus) {
    Scenario other = base;
    other.gpus = gpus;
    return !plan_space(other, pins).empty();
  };
  for (int64_t gpus = (base.gpus - 1) / host * host; gpus >= base.gpus / 2 && gpus > 0;
       gpus -= host) {
    if (!has_plans(gpus)) continue;
    near.push_back(gpus);
    break;
  }
  for (int64_t gpus = (base.gpus / host + 1) * host; gpus <= most; gpus += host) {
    if (!has_plans(gpus)) continue;
    near.push_back(gpus);
    break;
  }
  return near;
}

Scenario scenario_of(const Scenario& base, const PlanCandidate& candidate) {
  Scenario scenario = base;
  scenario.plan = candidate.plan;
  scenario.training.recompute = candidate.recompute;
  scenario.training.schedule = candidate.schedule->name;
  return scenario;
}

}  // namespace herdsim
