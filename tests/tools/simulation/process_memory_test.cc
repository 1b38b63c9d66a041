#include "tools/simulation/process_memory.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace herdsim {
namespace {

// In a process of its own: the heap of this one is as other tests left it, and has room from then on.
TEST(ProcessMemoryDeathTest, is_a_heap_of_huge_pages_with_room_for_a_million_gpus) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer has an allocator of its own";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(std::_Exit(keep_freed_memory() > size_t{200} << 20 ? 0 : 1), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace herdsim
