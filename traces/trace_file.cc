#include "traces/trace_file.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>

#include "sim/base/error.h"

namespace herdsim {
namespace {

// The fault of `path` that errno tells of.
SpecError file_error(const std::string& path, const std::string& what) {
  return SpecError({{.file = path, .problem = fmt::format("{}: {}", what, std::strerror(errno))}});
}

void write_to(const std::string& target, const std::string& path,
              const std::function<void(std::ostream&)>& write) {
  errno = 0;
  std::ofstream out(target, std::ios::binary | std::ios::trunc);
  if (!out) throw file_error(path, "the trace cannot be written");
  write(out);
  errno = 0;
  out.close();
  if (!out) throw file_error(path, "the trace is incomplete");
}

}  // namespace

void write_trace_file(const std::string& path, const std::function<void(std::ostream&)>& write) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (fs::is_directory(path, ignored))
    throw SpecError({{.file = path, .problem = "is a directory"}});
  if (fs::exists(path, ignored) && !fs::is_regular_file(path, ignored))
    return write_to(path, path, write);
  const std::string partial = path + ".partial";
  try {
    write_to(partial, path, write);
    std::error_code renamed;
    fs::rename(partial, path, renamed);
    if (renamed)
      throw SpecError({{.file = path, .problem = "cannot be replaced: " + renamed.message()}});
  } catch (...) {
    fs::remove(partial, ignored);
    throw;
  }
}

}  // namespace herdsim
