// The whiteboard for people and programs.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/base/text.h"
#include "tools/study/formula_sheet.h"
#include "tools/study/number_text.h"

namespace herdsim {
namespace {

std::string with_unit(const std::string& number, const std::string& unit) {
  return unit.empty() ? number : number + ' ' + unit;
}

}  // namespace

std::string formula_table(const FormulaSheet& sheet) {
  std::string text = fmt::format("  closed forms of {} GPUs{}\n", count_text(sheet.gpus),
                                 sheet.plan.empty() ? "" : " beside " + sheet.plan);
  for (const FormulaRow& row : sheet.rows) {
    text += fmt::format("  {:<42} {:>22}   {}\n", row.name,
                        with_unit(number_text(row.value), row.unit), row.formula);
    if (row.plan) {
      text += fmt::format("  {:<42} {:>22}\n",
                          sheet.plan.empty() ? "    this has" : "    this plan has",
                          with_unit(number_text(*row.plan), row.unit));
    }
    if (row.simulated) {
      text += fmt::format("  {:<42} {:>22}   {}\n", "    simulated", number_text(*row.simulated),
                          row.simulated_unit);
    }
    if (!row.note.empty()) text += fmt::format("      {}\n", row.note);
  }
  text += "  the whiteboard decides\n";
  for (const Decision& decision : sheet.decision) {
    text += "    " + decision.text + '\n';
    if (!decision.simulated.empty()) text += "      simulated: " + decision.simulated + '\n';
  }
  return text;
}

std::string formula_json(const FormulaSheet& sheet) {
  using Json = nlohmann::ordered_json;
  Json rows = Json::array(), decision = Json::array();
  for (const FormulaRow& row : sheet.rows) {
    Json j = {
        {"name", row.name}, {"formula", row.formula}, {"value", row.value}, {"unit", row.unit}};
    if (row.plan) j["plan"] = *row.plan;
    if (row.simulated) {
      j["simulated"] = *row.simulated;
      j["simulated_unit"] = row.simulated_unit;
    }
    j["note"] = row.note;
    rows.push_back(std::move(j));
  }
  for (const Decision& step : sheet.decision) {
    Json j = {{"whiteboard", step.text}};
    if (!step.simulated.empty()) j["simulated"] = step.simulated;
    decision.push_back(std::move(j));
  }
  return Json{{"plan", sheet.plan}, {"rows", std::move(rows)}, {"decision", std::move(decision)}}
      .dump(2);
}

}  // namespace herdsim
