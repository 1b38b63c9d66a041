// What a page about a run database shows: its tables, cut to a size that a browser reads at once.
//
// Everything of every run and sweep, the details of the newest runs only, failures of one replica,
// links as counts by tier and use. `limits` says in words what was cut.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace herdsim {

using StoredValue = std::variant<std::monostate, int64_t, double, std::string>;

struct StoredTable {
  std::string_view name;
  std::vector<std::string> columns;
  std::vector<std::vector<StoredValue>> rows;
};

struct ReportTables {
  std::vector<StoredTable> tables;  // those without a row as well
  std::vector<std::string> limits;
};

// Opens the file to read. A table that an older schema lacks is empty.
// Throws: SpecError with the path where it is no readable run database.
ReportTables read_report_tables(const std::string& path);

}  // namespace herdsim
