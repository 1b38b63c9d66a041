#include "tools/validation/reliability_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "sim/base/table.h"

namespace herdsim {

std::string reliability_table(const std::vector<ReliabilityTarget>& targets) {
  TextTable table({{"figure", Align::kWrap},
                   {"predicted", Align::kRight},
                   {"published", Align::kRight},
                   {"bounds", Align::kRight},
                   {"unit"},
                   {""}});
  for (const ReliabilityTarget& target : targets) {
    table.add_row({std::string(target.what), fmt::format("{:.4g}", target.predicted),
                   fmt::format("{:.4g}", target.published),
                   fmt::format("{:.4g} to {:.4g}", target.low, target.high),
                   std::string(target.unit), target.holds() ? "" : "outside"});
  }
  const auto held = std::count_if(targets.begin(), targets.end(),
                                  [](const ReliabilityTarget& target) { return target.holds(); });
  return table.text() + fmt::format("\n{} of {} within their bounds\n", held, targets.size());
}

std::string reliability_json(const std::vector<ReliabilityTarget>& targets) {
  nlohmann::ordered_json out;
  out["targets"] = nlohmann::ordered_json::array();
  for (const ReliabilityTarget& target : targets) {
    out["targets"].push_back({{"id", target.id},
                              {"what", target.what},
                              {"predicted", target.predicted},
                              {"published", target.published},
                              {"low", target.low},
                              {"high", target.high},
                              {"unit", target.unit},
                              {"holds", target.holds()},
                              {"source", target.source}});
  }
  return out.dump(1) + "\n";
}

std::string reliability_csv(const std::vector<ReliabilityTarget>& targets) {
  std::string out = "id,predicted,published,low,high,unit,holds\n";
  for (const ReliabilityTarget& target : targets) {
    out += fmt::format("{},{},{},{},{},{},{}\n", target.id, target.predicted, target.published,
                       target.low, target.high, target.unit, target.holds());
  }
  return out;
}

}  // namespace herdsim
