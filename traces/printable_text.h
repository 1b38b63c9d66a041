// Names as a trace may hold them.
#pragma once

#include <string>
#include <string_view>

namespace herdsim {

// `text` as valid UTF-8 without control characters: each byte that is neither becomes "\xHH", and a
// backslash that begins such an escape in the input stays as it is. A protobuf string must be
// UTF-8, and a line feed in a track's name breaks the rows of the viewer.
//   printable("all\nreduce") == "all\\x0areduce"
// Complexity: linear; returns a copy of clean text.
std::string printable(std::string_view text);

}  // namespace herdsim
