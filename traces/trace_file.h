// A trace on its way into a file.
#pragma once

#include <functional>
#include <ostream>
#include <string>

namespace herdsim {

// The file appears under its name only when it is complete: until then it is `path`.partial, which
// is removed on failure. A path that exists and is no regular file (a pipe, /dev/stdout) is written
// directly. Throws: SpecError with the path, and whatever `write` throws.
void write_trace_file(const std::string& path, const std::function<void(std::ostream&)>& write);

}  // namespace herdsim
