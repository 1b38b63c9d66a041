// The bytes of a file that a user named.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace herdsim {

// Tables, logs and maps of the largest jobs have some megabytes; beyond this a file is something else.
constexpr size_t kMostFileBytes = size_t{1} << 28;

// What some editors and spreadsheets write before UTF-8 text.
inline constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// Throws: SpecError that names the file, and `field` where it is given: a directory, what cannot be opened or read,
// more than `most` bytes (a device has no end).
std::string read_file(const std::string& path, const std::string& field = "", size_t most = kMostFileBytes);

}  // namespace herdsim
