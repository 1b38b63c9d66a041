#include "calibrate/nccl_tests/log_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "calibrate/nccl_tests/log_measurements.h"
#include "sim/base/table.h"
#include "sim/base/text.h"

namespace herdsim {
namespace {

using Json = nlohmann::ordered_json;

std::string counted(int64_t n, std::string_view what) {
  return fmt::format("{} {}{}", n, what, n == 1 ? "" : "s");
}

std::string title(const NcclTest& t) {
  std::string text = t.collective.empty() ? "an unknown collective" : t.collective;
  text += t.ranks > 0 ? ", " + counted(t.ranks, "rank") : ", ranks not known";
  text += t.nodes > 0 ? " on " + counted(t.nodes, "node") : ", nodes not known";
  if (!t.gpu.empty()) text += ", " + t.gpu;
  if (!t.nccl.empty()) text += ", NCCL " + t.nccl;
  return text;
}

std::string rows_text(const NcclTest& t) {
  const auto empty = std::count_if(t.rows.begin(), t.rows.end(),
                                   [](const NcclTestsRow& row) { return row.size <= Bytes(); });
  const auto first = std::find_if(t.rows.begin(), t.rows.end(),
                                  [](const NcclTestsRow& row) { return row.size > Bytes(); });
  std::string text = counted(static_cast<int64_t>(t.rows.size()), "row");
  if (first != t.rows.end()) {
    text += fmt::format(", {} to {}", to_text(first->size), to_text(t.rows.back().size));
  }
  if (empty > 0) text += fmt::format("; {} of zero bytes", empty);
  return text;
}

std::string speed_text(const LinkVerdict& v) {
  std::string text = fmt::format("{:.1f} GB/s at {}", v.bus_bandwidth, to_text(v.at));
  if (v.bound <= 0) return text + "; " + v.derivation;
  return text + fmt::format(" is {:.0f} % of {:.1f} GB/s, the physical bound: {}", 100 * v.share(),
                            v.bound, v.derivation);
}

std::string latency_text(const LinkVerdict& v) {
  std::string text =
      v.smallest_us > 0 ? fmt::format("{:.4g} us for the shortest", v.smallest_us) : "";
  if (v.launch_us > 0) {
    text += fmt::format("{}{:.4g} us for a launch that moves nothing", text.empty() ? "" : "; ",
                        v.launch_us);
  }
  return text;
}

std::string test_text(const NcclTest& t, const VerdictOptions& options) {
  const LinkVerdict v = judge_links(t, options);
  TextTable table({{""}, {"", Align::kWrap}});
  table.add_row({"  rows", rows_text(t)});
  table.add_row({"  bus", speed_text(v)});
  table.add_row({"  time", latency_text(v)});
  if (t.named_by != "the log" && !t.collective.empty()) {
    table.add_row({"  known", fmt::format("the collective from {}, the ranks from {}", t.named_by,
                                          t.ranks_from.empty() ? "nothing" : t.ranks_from)});
  }
  for (const std::string& what : v.fine) table.add_row({"  note", what});
  for (const std::string& what : v.suspicious) table.add_row({"  suspicious", what});
  for (const std::string& what : v.loud) table.add_row({"  !!!", what});
  return title(t) + "\n" + table.text();
}

// "3 skipped: 2 cut short (lines 14, 20), ..."
std::string skipped_text(const NcclTestsLog& log) {
  std::map<std::string, std::vector<int>> lines;
  for (const SkippedRow& row : log.skipped) lines[row.reason].push_back(row.line);
  std::string text;
  for (const auto& [reason, at] : lines) {
    constexpr size_t kShown = 5;
    std::string where;
    for (size_t i = 0; i < std::min(at.size(), kShown); ++i) {
      if (at[i] > 0) where += fmt::format("{}{}", where.empty() ? "" : ", ", at[i]);
    }
    text +=
        fmt::format("  {} row{} skipped: {}{}{}\n", at.size(), at.size() == 1 ? "" : "s", reason,
                    where.empty() ? "" : "; line " + where, at.size() > kShown ? ", ..." : "");
  }
  return text;
}

Json half_json(const std::optional<NcclTestsHalf>& half) {
  if (!half) return {};
  return {{"time_us", half->microseconds},
          {"algbw_GBps", half->algorithm_bandwidth},
          {"busbw_GBps", half->bus_bandwidth},
          {"wrong", half->wrong ? Json(*half->wrong) : Json()}};
}

Json number_or_null(double value) { return value > 0 ? Json(value) : Json(); }
Json text_or_null(const std::string& value) { return value.empty() ? Json() : Json(value); }

Json verdict_json(const LinkVerdict& v) {
  return {{"busbw_GBps", v.bus_bandwidth},
          {"at_bytes", v.at.count()},
          {"bound_GBps", number_or_null(v.bound)},
          {"share_of_bound", number_or_null(v.share())},
          {"derivation", v.derivation},
          {"above_ring", v.above_ring},
          {"smallest_us", number_or_null(v.smallest_us)},
          {"launch_us", number_or_null(v.launch_us)},
          {"notes", v.fine},
          {"suspicious", v.suspicious},
          {"wrong_results", v.loud}};
}

Json test_json(const NcclTest& t, const VerdictOptions& options) {
  Json rows = Json::array();
  for (const NcclTestsRow& row : t.rows) {
    rows.push_back({{"line", row.line},
                    {"bytes", row.size.count()},
                    {"count", row.count},
                    {"type", row.type},
                    {"redop", text_or_null(row.reduction)},
                    {"time_us", row.seconds() * 1e6},
                    {"out_of_place", half_json(row.out_of_place)},
                    {"in_place", half_json(row.in_place)}});
  }
  return {{"collective", text_or_null(t.collective)},
          {"named_by", text_or_null(t.named_by)},
          {"ranks", t.ranks > 0 ? Json(t.ranks) : Json()},
          {"ranks_from", text_or_null(t.ranks_from)},
          {"nodes", t.nodes > 0 ? Json(t.nodes) : Json()},
          {"gpu", text_or_null(t.gpu)},
          {"nccl", text_or_null(t.nccl)},
          {"algorithm", text_or_null(t.algorithm)},
          {"finished", t.finished},
          {"verdict", verdict_json(judge_links(t, options))},
          {"rows", std::move(rows)}};
}

size_t rows_of(const std::vector<NcclTestsLog>& logs) {
  size_t rows = 0;
  for (const NcclTestsLog& log : logs) rows += log.rows();
  return rows;
}

size_t skipped_of(const std::vector<NcclTestsLog>& logs) {
  size_t rows = 0;
  for (const NcclTestsLog& log : logs) rows += log.skipped.size();
  return rows;
}

}  // namespace

std::string nccl_tests_text(const std::vector<NcclTestsLog>& logs, const VerdictOptions& options) {
  std::string text;
  for (const NcclTestsLog& log : logs) {
    if (logs.size() > 1) text += log.file + "\n";
    for (const NcclTest& test : log.tests) text += test_text(test, options);
    text += skipped_text(log);
  }
  return text + fmt::format("{} rows read, {} skipped\n", rows_of(logs), skipped_of(logs));
}

std::string nccl_tests_json(const std::vector<NcclTestsLog>& logs, const VerdictOptions& options) {
  Json files = Json::array();
  for (const NcclTestsLog& log : logs) {
    Json tests = Json::array(), skipped = Json::array();
    for (const NcclTest& test : log.tests) tests.push_back(test_json(test, options));
    for (const SkippedRow& row : log.skipped)
      skipped.push_back({{"line", row.line}, {"reason", row.reason}});
    files.push_back(
        {{"file", log.file}, {"skipped", std::move(skipped)}, {"tests", std::move(tests)}});
  }
  const Json all = {
      {"rows_read", rows_of(logs)}, {"rows_skipped", skipped_of(logs)}, {"logs", std::move(files)}};
  return all.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string nccl_tests_csv(const std::vector<NcclTestsLog>& logs) {
  std::string text = "op,gpus,nodes,bytes,time_us,dtype\n";
  for (const NcclTestsLog& log : logs) {
    for (const NcclTest& test : log.tests) {
      if (!reason_for_no_curve(test).empty()) continue;
      for (const CollectiveMeasurement& row : measurements_of(test)) {
        text += fmt::format("{},{},{},{},{:.6g},{}\n", row.kind, row.ranks, row.nodes,
                            row.size.count(), row.seconds * 1e6, row.dtype);
      }
    }
  }
  return text;
}

}  // namespace herdsim
