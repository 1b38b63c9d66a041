// Attaches durations to work: each kernel from the device's profile, the software stack's clock and host time, and the
// pace of the slowest GPU of the job. No contention, no waiting: those belong to the executor.
//
// Slowest GPU. A synchronous step ends at a barrier, so all ranks run at the pace of the slowest. With speeds spread by a
// relative standard deviation sigma, the expected slowest of n is 1 + sigma * E[max of n standard normals] slower;
// E[max] is Blom's approximation, Phi^-1((n - 0.375) / (n + 0.25)) (Blom 1958; within 1 % of the exact 3.95 at 16,384).
// The time beyond a nominal GPU's is booked as `straggler`.
#pragma once

#include <string>
#include <vector>

#include "sim/base/time.h"
#include "sim/models/compute_time.h"
#include "sim/models/software_stack.h"
#include "sim/opgraph/op_graph.h"

namespace herdsim {

struct KernelLine {
  Duration time;  // as it will run, without the straggler's share
  KernelCost cost;
};

// The cost of one piece of compute work on a nominal rank; transfers have none here.
struct WorkCost {
  Duration total;  // what the executor runs
  std::array<Duration, kTimeTerms> terms{};  // sums to total
  // The part that grows with a rank's share of uneven work.
  Uneven uneven = Uneven::kNot;
  Duration uneven_time;
  std::vector<KernelLine> kernels;  // as in Work::kernels
};

struct CostedGraph {
  TypedVector<WorkId, WorkCost> works;
  std::vector<std::string> warnings;  // kernels outside the profile's measured range, once a name
};

// 0 for one GPU.
double expected_slowest_sigmas(int64_t gpus);

// Requires: the profile has the stack's attention kernel.
CostedGraph cost_graph(const OpGraph& graph, const DeviceProfile& profile,
                       const SoftwareStack& software);

}  // namespace herdsim
