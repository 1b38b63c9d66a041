// One self-contained HTML page about a run database: no network, no other file.
//
//   write(report_page(read_report_tables("out/runs.db"), {.database = "runs.db", .version =
//   "0.1.0"}));
//
// The page is a template that was bundled from src/ when the program was built; here it gets its
// data, as JSON in an element that no browser runs. What the data's texts hold cannot end that
// element.
#pragma once

#include <string>
#include <string_view>

#include "traces/db/report_tables.h"

namespace herdsim {

struct ReportOrigin {
  std::string database;  // the name that the page shows
  std::string version;   // of the program
};

// Why this program has no page; "" where it has one.
std::string_view report_page_is_missing_because();

// The data alone: {"database", "version", "limits", "tables": {name: {"columns", "rows"}}}, valid
// UTF-8 on one line.
std::string report_json(const ReportTables& tables, const ReportOrigin& origin);

// Requires: report_page_is_missing_because() is "".
std::string report_page(const ReportTables& tables, const ReportOrigin& origin);

}  // namespace herdsim
