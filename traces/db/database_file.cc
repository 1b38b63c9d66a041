#include "traces/db/database_file.h"

#include <fmt/format.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>

#include "sim/base/error.h"

namespace herdsim {
namespace {

// The file format's header (sqlite.org/fileformat2.html): magic, then big-endian fields at fixed
// places.
constexpr size_t kHeaderBytes = 100;
constexpr std::string_view kMagic("SQLite format 3\0", 16);
constexpr size_t kUserVersionAt = 60;
constexpr size_t kApplicationIdAt = 68;

uint32_t big_endian(const std::array<char, kHeaderBytes>& header, size_t at) {
  uint32_t value = 0;
  for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<uint8_t>(header[at + i]);
  return value;
}

[[noreturn]] void refuse(const std::string& path, std::string problem) {
  throw SpecError(
      {{.file = path, .problem = std::move(problem), .allowed = "a new file or a run database"}});
}

}  // namespace

DatabaseFile inspect_database_file(const std::string& path) {
  namespace fs = std::filesystem;
  std::error_code unknown;
  if (fs::is_directory(path, unknown)) refuse(path, "is a directory");
  if (!fs::exists(path, unknown)) return DatabaseFile::kAbsent;
  if (!fs::is_regular_file(path, unknown)) refuse(path, "is not a regular file");
  if (fs::file_size(path, unknown) == 0) return DatabaseFile::kAbsent;
  errno = 0;
  std::ifstream in(path, std::ios::binary);
  if (!in) refuse(path, fmt::format("cannot be read: {}", std::strerror(errno)));
  std::array<char, kHeaderBytes> header{};
  in.read(header.data(), kHeaderBytes);
  if (in.gcount() != kHeaderBytes || std::string_view(header.data(), kMagic.size()) != kMagic) {
    refuse(path, "is not an SQLite database");
  }
  if (big_endian(header, kApplicationIdAt) != kRunDatabaseId)
    refuse(path, "is a database of another program");
  const uint32_t version = big_endian(header, kUserVersionAt);
  if (version > kSchemaVersion) {
    refuse(path, fmt::format("has schema version {}, and this program knows up to {}", version,
                             kSchemaVersion));
  }
  return DatabaseFile::kRunDatabase;
}

}  // namespace herdsim
