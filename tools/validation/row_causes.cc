#include "tools/validation/row_causes.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>

#include "sim/base/error.h"
#include "tools/scenario/catalog.h"
#include "tools/scenario/load_scenario.h"
#include "tools/simulation/simulate_step.h"
#include "tools/study/uncertain_inputs.h"
#include "tools/validation/row_clock.h"
#include "tools/validation/row_words.h"

namespace herdsim {
namespace {

[[noreturn]] void refuse(std::string field, std::string problem, std::string allowed = "",
                         std::string nearest = "") {
  Fault fault;
  fault.field = std::move(field);
  fault.problem = std::move(problem);
  fault.allowed = std::move(allowed);
  fault.nearest = std::move(nearest);
  throw SpecError({fault});
}

// At most three, the nearest first; those that begin alike where none is near.
std::vector<std::string> nearest_ids(std::vector<std::string> ids, const std::string& which) {
  constexpr size_t kMost = 3;
  std::vector<std::string> near;
  for (std::string next = nearest_name(which, ids); !next.empty() && near.size() < kMost;
       next = nearest_name(which, ids)) {
    near.push_back(next);
    std::erase(ids, next);
  }
  if (!near.empty()) return near;
  const auto alike = [&](const std::string& id) {
    const auto end = std::mismatch(id.begin(), id.end(), which.begin(), which.end()).first;
    return end - id.begin();
  };
  std::stable_sort(ids.begin(), ids.end(),
                   [&](const std::string& a, const std::string& b) { return alike(a) > alike(b); });
  ids.resize(std::min(ids.size(), kMost));
  return ids;
}

// A column that a row may leave blank, and what else than the assumed value it may mean.
struct BlankCell {
  std::string_view column;
  bool (*is_blank)(const RunRow&);
  void (*set)(RunRow&, const std::string& value);
  std::string (*assumed)(const Scenario&);
  std::vector<std::string> (*alternatives)(const Scenario&);
};

int64_t whole(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) {
    refuse("--why", "\"" + text + "\" is no whole number");
  }
  return value;
}

std::string recompute_word(Recompute recompute) {
  return recompute == Recompute::kNone   ? "none"
         : recompute == Recompute::kFull ? "full"
                                         : "selective";
}

std::vector<std::string> all_but(std::vector<std::string> words, const std::string& word) {
  std::erase(words, word);
  return words;
}

constexpr BlankCell kBlankCells[] = {
    {"recompute", [](const RunRow& row) { return row.recompute.empty(); },
     [](RunRow& row, const std::string& value) { row.recompute = value; },
     [](const Scenario& s) { return recompute_word(s.training.recompute); },
     [](const Scenario& s) {
       return all_but({"none", "selective", "full"}, recompute_word(s.training.recompute));
     }},
    {"attention_kernel", [](const RunRow& row) { return row.attention_kernel.empty(); },
     [](RunRow& row, const std::string& value) { row.attention_kernel = value; },
     [](const Scenario& s) { return s.software.attention_kernel; },
     [](const Scenario& s) {
       std::vector<std::string> kernels;
       for (const AttentionKernel& kernel : s.profile.attention) kernels.push_back(kernel.name);
       std::sort(kernels.begin(), kernels.end());
       kernels.erase(std::unique(kernels.begin(), kernels.end()), kernels.end());
       return all_but(std::move(kernels), s.software.attention_kernel);
     }},
    {"micro_batch", [](const RunRow& row) { return !row.micro_batch; },
     [](RunRow& row, const std::string& value) { row.micro_batch = whole(value); },
     [](const Scenario& s) { return std::to_string(s.plan.micro_batch); },
     [](const Scenario& s) {
       std::vector<std::string> sizes;
       for (const int64_t size : {2, 4, 8}) {
         if (s.training.global_batch % (s.plan.dp * size) == 0)
           sizes.push_back(std::to_string(size));
       }
       return sizes;
     }},
    {"vp",
     [](const RunRow& row) {
       return !row.vp && row.pp.value_or(1) > 1 && !words_of(row).one_chunk_a_stage;
     },
     [](RunRow& row, const std::string& value) { row.vp = whole(value); },
     [](const Scenario& s) { return std::to_string(s.plan.virtual_stages); },
     [](const Scenario& s) {
       return s.plan.virtual_stages > 1 ? std::vector<std::string>{"1"}
                                        : std::vector<std::string>{};
     }},
    {"sp", [](const RunRow& row) { return !row.sp && row.tp.value_or(1) > 1; },
     [](RunRow& row, const std::string& value) { row.sp = value == "1"; },
     [](const Scenario& s) { return std::string(s.plan.sequence_parallel ? "1" : "0"); },
     [](const Scenario& s) {
       return std::vector<std::string>{s.plan.sequence_parallel ? "0" : "1"};
     }},
    {"fsdp_zero", [](const RunRow& row) { return row.fsdp_zero.empty(); },
     [](RunRow& row, const std::string& value) { row.fsdp_zero = value; },
     [](const Scenario& s) {
       return std::string(s.plan.shard == Sharding::kZero3 ? "ZeRO-3" : "ZeRO-1");
     },
     [](const Scenario& s) {
       return std::vector<std::string>{s.plan.shard == Sharding::kZero3 ? "ZeRO-1" : "ZeRO-3"};
     }},
};

constexpr std::string_view kRow = "row.", kSoftware = "software.";
constexpr std::string_view kNicEfficiency = "cluster.nic_efficiency";

// The row with one more --set.
Scenario variant_of(const RunRow& row, const RowParts& parts, const std::string& set) {
  RunRow changed = row;
  std::vector<std::string> software;
  const size_t equals = set.find('=');
  const std::string value = equals == std::string::npos ? "" : set.substr(equals + 1);
  if (set.starts_with(kSoftware)) software.push_back(set.substr(kSoftware.size()));
  for (const BlankCell& cell : kBlankCells) {
    if (set.starts_with(fmt::format("{}{}=", kRow, cell.column))) cell.set(changed, value);
  }
  RowScenario read = scenario_of_row(changed, parts, software);
  if (!read.skipped_because.empty()) refuse(row.id, read.skipped_because);
  MachineMemo machines;
  settle_clock(read, machines);
  if (!read.skipped_because.empty()) refuse(row.id, read.skipped_because);
  if (set.starts_with(kNicEfficiency)) {
    // What catalogue ranges are made of.
    std::from_chars(value.data(), value.data() + value.size(),
                    read.scenario.cluster.nic_efficiency);
  }
  return std::move(read.scenario);
}

std::vector<UncertainInput> inputs_of(const RunRow& row, const RowParts& parts,
                                      const Scenario& base) {
  std::vector<UncertainInput> inputs;
  for (UncertainInput& input : uncertain_inputs_of_software(row.software)) {
    if (!is_set(parts.software_sets(), input.path.substr(kSoftware.size()))) {
      inputs.push_back(std::move(input));
    }
  }
  if (base.measured_network.all_reduce == Bandwidth()) {
    // Assumed for every cluster alike.
    for (UncertainInput& input :
         ranges_in(catalog_find(CatalogKind::kClusters, "dgx-superpod-16k")->text)) {
      input.path = "cluster." + input.path;
      input.value = fmt::format("{}", base.cluster.nic_efficiency);
      if (input.path == kNicEfficiency) inputs.push_back(std::move(input));
    }
  }
  for (const BlankCell& cell : kBlankCells) {
    if (!cell.is_blank(row)) continue;
    const std::string assumed = cell.assumed(base);
    for (std::string& other : cell.alternatives(base)) {
      inputs.push_back({.path = fmt::format("{}{}", kRow, cell.column),
                        .value = assumed,
                        .low = assumed,
                        .high = std::move(other),
                        .evidence = "blank",
                        .source = "the run does not state it"});
    }
  }
  return inputs;
}

}  // namespace

size_t index_of_row(const std::vector<std::string>& ids, const std::string& which) {
  const auto found = std::find(ids.begin(), ids.end(), which);
  if (found != ids.end()) return static_cast<size_t>(found - ids.begin());
  size_t number = 0;
  const auto [end, error] = std::from_chars(which.data(), which.data() + which.size(), number);
  const bool is_number = error == std::errc() && end == which.data() + which.size();
  if (is_number && number >= 1 && number <= ids.size()) return number - 1;
  const std::vector<std::string> near = nearest_ids(ids, which);
  refuse("--why", fmt::format("there is no row \"{}\"", which),
         fmt::format("a number from 1 to {}, or an id", ids.size()),
         fmt::format("{}", fmt::join(near, "\", \"")));
}

ErrorQuestion question_of_row(const RunRow& row, const RowParts& parts) {
  const RowScenario base = scenario_of_row(row, parts);
  if (!base.skipped_because.empty()) refuse(row.id, "is not predicted: " + base.skipped_because);
  if (!row.target_step_time_s) refuse(row.id, "has no target_step_time_s to be off from");
  return {.name = row.id,
          .description =
              fmt::format("{} on {} {}, {}", row.model, base.scenario.gpus, row.gpu, row.software),
          .published_step_time_s = *row.target_step_time_s,
          .variant = [&row, &parts](const std::string& set) { return variant_of(row, parts, set); },
          .inputs = inputs_of(row, parts, base.scenario),
          .assumed = base.assumed};
}

ErrorQuestion question_of_published(const PublishedComparison& row,
                                    const std::vector<std::string>& sets) {
  const ScenarioVariant variant = [name = row.scenario, sets](const std::string& set) {
    std::vector<std::string> all = sets;
    if (!set.empty()) all.push_back(set);
    return load_scenario(name, all);
  };
  const Scenario base = variant("");
  const StepResult step = simulate_step(base, {.result_alone = true}).result;
  return {.name = row.scenario,
          .description = row.source,
          .published_step_time_s = step.step_time.seconds() * step.mfu_causal() / row.published_mfu,
          .variant = variant,
          .inputs = uncertain_inputs(base.effective_text),
          .assumed = {}};
}

}  // namespace herdsim
