// f(i) for every i of a range, over threads.
#pragma once

#include <cstddef>
#include <functional>

namespace herdsim {

// Returns when all are done; rethrows the first failure. The order of the calls is free.
void parallel_for(size_t count, int threads, const std::function<void(size_t)>& f);

}  // namespace herdsim
