#include "tools/validation/measured_hosts.h"

#include <algorithm>

namespace herdsim {
namespace {

// A published grid of runs, 16 to 512 GPUs, has jobs of two kinds. In most, a step of the ring of
// an all-gather takes 22 to 69 us beyond its bytes on the wire; in the others 130 to 330 us,
// whether 67 or 2 MB pass, as where those who post them have to wait for a core. In the latter, and
// only there, a layer cannot take less than about 9, 14 and 23 ms with 2, 4 and 8 tensor-parallel
// ranks, whatever its width and micro-batch, and in one job without them it takes less than 7.3.
constexpr double kStalledStep = 100;  // microseconds

// Fitted on the calibration rows of those jobs.
constexpr double kProbability = 0.037;

// What a ring of 1 GiB reaches of eight NICs of 50 GB/s in those jobs. Slower wires reach as much
// of their rate, and take as much longer.
constexpr double kReached = 275.0 / 400;
constexpr double kMeasuredBytes = 1024.0 * 1024 * 1024;

}  // namespace

HostStalls stalls_of_measured(const MeasuredNetwork& measured, int64_t ranks,
                              int64_t ranks_per_host, Bandwidth host_wires) {
  HostStalls stalls;
  const double rate = static_cast<double>(measured.all_gather.bytes_per_second()) / 1e9;
  if (rate <= 0 || ranks <= ranks_per_host) return stalls;
  const double wire = kReached * static_cast<double>(host_wires.bytes_per_second()) / 1e9;
  const double chunk = kMeasuredBytes / static_cast<double>(ranks);
  const double beyond_the_wire = (chunk / rate - chunk / std::max(rate, wire)) / 1e3;
  if (beyond_the_wire > kStalledStep) stalls.probability = kProbability;
  return stalls;
}

}  // namespace herdsim
