#include "tools/simulation/process_memory.h"

#include <malloc.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace herdsim {
namespace {

constexpr int kHeap = 256 << 20;  // room for a million GPUs; takes memory where it is touched
constexpr int kLargestOnHeap = 32 << 20;  // glibc's own maximum
constexpr uintptr_t kHugePage = 2 << 20;

}  // namespace

size_t keep_freed_memory() {
  mallopt(M_MMAP_THRESHOLD, kLargestOnHeap);
  mallopt(M_MMAP_MAX, 0);  // larger ones too
  mallopt(M_TRIM_THRESHOLD, INT32_MAX);
  mallopt(M_TOP_PAD, kHeap);
  // Grows the heap by the padding and gives the block back to it.
  const auto begin = (reinterpret_cast<uintptr_t>(sbrk(0)) + kHugePage - 1) & ~(kHugePage - 1);
  // Volatile, since compilers leave out a block that nobody uses.
  void* volatile block = std::malloc(kLargestOnHeap / 2);
  std::free(block);
  const auto end = reinterpret_cast<uintptr_t>(sbrk(0)) & ~(kHugePage - 1);
  // A kernel without huge pages refuses; then pages are small and everything else is the same.
  if (begin >= end) return 0;
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
  return end - begin;
}

}  // namespace herdsim
