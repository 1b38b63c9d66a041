#include "sim/base/read_file.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "sim/base/error.h"

namespace herdsim {

std::string read_file(const std::string& path, const std::string& field, size_t most) {
  const auto fail = [&](std::string problem, std::string allowed) {
    throw SpecError({{.file = path, .field = field, .problem = std::move(problem), .allowed = std::move(allowed)}});
  };
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown)) fail("is a directory", "a file");
  std::ifstream in(path, std::ios::binary);
  if (!in) fail("cannot be read", "a file that exists and may be read");
  constexpr size_t kAtOnce = size_t{1} << 20;
  std::string text;
  while (in && text.size() <= most) {
    const size_t before = text.size();
    text.resize(before + std::min(kAtOnce, most + 1 - before));
    in.read(text.data() + before, static_cast<std::streamsize>(text.size() - before));
    text.resize(before + static_cast<size_t>(in.gcount()));
  }
  if (in.bad()) fail("cannot be read", "a file that may be read");
  if (text.size() > most) fail("is longer than " + std::to_string(most >> 20) + " MiB", "a shorter file");
  return text;
}

}  // namespace herdsim
