// Compares text with a file under tests/golden. On a mismatch the new text is written to
// golden_new/ beside the build's programs and both paths are printed with the first lines that
// differ; tools/accept_golden copies the new files over.
//
//   EXPECT_TRUE(matches_golden("step_table.txt", step_table(result)));
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace herdsim {

inline std::string file_text(const std::filesystem::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

inline ::testing::AssertionResult matches_golden(const std::string& name,
                                                 const std::string& actual) {
  namespace fs = std::filesystem;
  const fs::path golden = fs::path(HERDSIM_SOURCE_DIR) / "tests/golden" / name;
  const std::string expected = file_text(golden);
  if (actual == expected) return ::testing::AssertionSuccess();
  const fs::path fresh =
      fs::read_symlink("/proc/self/exe").parent_path().parent_path() / "golden_new" / name;
  fs::create_directories(fresh.parent_path());
  std::ofstream(fresh, std::ios::binary) << actual;
  auto failure = ::testing::AssertionFailure() << "golden " << golden << "\nnew    " << fresh;
  std::istringstream old_lines(expected), new_lines(actual);
  constexpr int kShown = 10;
  for (int line = 1, shown = 0; shown < kShown && (old_lines || new_lines); ++line) {
    std::string was, is;
    std::getline(old_lines, was);
    std::getline(new_lines, is);
    if (was == is) continue;
    failure << "\n" << line << "- " << was << "\n" << line << "+ " << is;
    ++shown;
  }
  return failure;
}

}  // namespace herdsim
