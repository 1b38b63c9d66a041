#include "tools/simulation/process_memory.h"

#include <gtest/gtest.h>

namespace herdsim {
namespace {

TEST(ProcessMemory, is_a_heap_of_huge_pages_with_room_for_a_million_gpus) {
#if defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer has an allocator of its own";
#endif
  EXPECT_GT(keep_freed_memory(), size_t{200} << 20);
}

}  // namespace
}  // namespace herdsim
