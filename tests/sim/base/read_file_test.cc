#include "sim/base/read_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "sim/base/error.h"

namespace herdsim {
namespace {

std::string fault_of(const std::string& path, size_t most = kMostFileBytes) {
  try {
    read_file(path, "--table", most);
  } catch (const SpecError& error) {
    return error.what();
  }
  return "";
}

TEST(ReadFile, gives_every_byte_or_says_why_not) {
  const std::string folder = ::testing::TempDir() + "read_file";
  std::filesystem::create_directories(folder);
  const std::string path = folder + "/bytes";
  const std::string bytes("a\0b\r\n\xff", 6);
  std::ofstream(path, std::ios::binary) << bytes;
  EXPECT_EQ(read_file(path), bytes);
  EXPECT_EQ(read_file(path, "", 6), bytes);
  EXPECT_EQ(fault_of(path, 5), path + ": --table: is longer than 0 MiB; allowed: a shorter file");
  std::ofstream(path, std::ios::trunc).close();
  EXPECT_EQ(read_file(path), "");
  EXPECT_EQ(fault_of(folder), folder + ": --table: is a directory; allowed: a file");
  EXPECT_EQ(fault_of(folder + "/none"),
            folder + "/none: --table: cannot be read; allowed: a file that exists and may be read");
  EXPECT_NE(fault_of("/dev/zero", size_t{3} << 20).find("longer than 3 MiB"), std::string::npos);
  std::filesystem::remove_all(folder);
}

}  // namespace
}  // namespace herdsim
