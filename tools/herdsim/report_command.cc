#include "tools/herdsim/report_command.h"

#include <fmt/format.h>
#include <fmt/ostream.h>

#include <filesystem>
#include <fstream>

#include "sim/base/error.h"
#include "sim/base/text.h"
#include "tools/herdsim/load_options.h"
#include "tools/herdsim/version.h"
#include "tools/report_page/report_page.h"

namespace herdsim {
namespace {

constexpr std::string_view kStandardOutput = "-";

// Under its name only when it is whole.
void write_whole(const std::string& path, const std::string& text) {
  namespace fs = std::filesystem;
  const std::string partial = path + ".partial";
  std::ofstream file(partial, std::ios::binary);
  file << text;
  file.close();
  std::error_code refused;
  if (file) fs::rename(partial, path, refused);
  if (file && !refused) return;
  std::error_code ignored;
  fs::remove(partial, ignored);
  throw SpecError({{.file = path,
                    .problem = "cannot be written",
                    .allowed = "-o FILE.html in a folder that exists"}});
}

void check_options(const Options& options) {
  if (!options.sets.empty()) {
    reject("--set", "changes nothing: a report shows what is stored", "no --set");
  }
  if (options.format == OutputFormat::kCsv) {
    reject("--format", "a report is a page", "table for the page, json for its data");
  }
  if (options.format == OutputFormat::kTable && !report_page_is_missing_because().empty()) {
    reject("report", fmt::format("this build has no page: {}", report_page_is_missing_because()),
           "--format json, or build again");
  }
}

}  // namespace

int run_report_command(const Options& options, Streams streams) {
  check_options(options);
  const std::filesystem::path database = options.names.front();
  const ReportTables tables = read_report_tables(database.string());
  const ReportOrigin origin{database.filename().string(), std::string(kVersion)};
  const bool json = options.format == OutputFormat::kJson;
  const std::string text = json ? report_json(tables, origin) + '\n' : report_page(tables, origin);
  if (options.output == kStandardOutput || (json && options.output.empty())) {
    streams.out << text;
    return kExitDone;
  }
  const std::string path = options.output.empty()
                               ? std::filesystem::path(database).replace_extension(".html").string()
                               : options.output;
  write_whole(path, text);
  if (!options.quiet) {
    fmt::print(streams.out, "{}: {}\n", path, to_text(Bytes(static_cast<int64_t>(text.size()))));
  }
  return kExitDone;
}

}  // namespace herdsim
