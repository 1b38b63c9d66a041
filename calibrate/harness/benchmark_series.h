// Samples of one probe, taken by Google Benchmark with manual timing: the device tells how long
// each took, the library runs the loop and counts. It runs as many as it is asked for; when there
// are enough is for sampling.h to say.
//
//   const SampleBatch batch = time_by_benchmark("stream fused 65536", {.bytes = 65536}, 7,
//                                               [&] { return backend.time(id, runs); });
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "calibrate/harness/probe_work.h"
#include "calibrate/harness/sampling.h"

namespace herdsim {

struct SampleBatch {
  std::vector<Sample> samples;
  // As the library counts them: the mean of the samples, and the work of a run over it (0: none).
  double mean_seconds = 0;
  double flops_per_second = 0, bytes_per_second = 0;
};

// Calls `take` that many times; prints nothing. The library keeps its benchmarks in a global list:
// they are of this call alone, the list is empty before and after it, and calls must not overlap.
// Requires: samples >= 1. Throws: std::runtime_error with the words of what `take` threw.
SampleBatch time_by_benchmark(const std::string& name, const ProbeWork& work, int64_t samples,
                              const std::function<Sample()>& take);

}  // namespace herdsim
