// What kind of file lies at a path, found without asking SQLite: opening a foreign database may
// already write to it.
#pragma once

#include <cstdint>
#include <string>

namespace herdsim {

constexpr uint32_t kRunDatabaseId = 0x48657264;  // "Herd", in the header's application_id
constexpr uint32_t kSchemaVersion = 2;           // in the header's user_version

enum class DatabaseFile : uint8_t { kAbsent, kRunDatabase };

// kAbsent for no file or an empty one.
// Throws: SpecError with the path for a directory, an unreadable file, anything that is no SQLite
// database, a database of another program, or a schema newer than this program's.
DatabaseFile inspect_database_file(const std::string& path);

}  // namespace herdsim
