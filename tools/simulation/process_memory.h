// How a process that simulates much should hold its memory. For main(), once, before threads start.
//
// A step of 16,384 GPUs touches 20 MB for some milliseconds. Given back and asked for again at every step, or touched page by
// page, that memory costs three times what the simulation does: 77 ms a step against 19 (both measured on one machine where a
// page fault takes 8 us). So freed memory is kept, and the heap's first 256 MB are huge pages where the kernel has them, as they
// are touched. Results do not depend on it.
#pragma once

#include <cstddef>

namespace herdsim {

// Returns how much of the heap may be huge pages; 0 where an allocator other than glibc's stands in for it.
size_t keep_freed_memory();

}  // namespace herdsim
