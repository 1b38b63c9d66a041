// The costed work of a step, as a person reads it: which kernels and transfers, how close to the machine's bounds, how
// often, how much of the step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/scenario/scenario.h"
#include "tools/simulation/simulate_step.h"

namespace herdsim {

struct ExplainedKernel {
  std::string name;     // "gate, up wgrad"
  std::string shape;    // "8192 x 13312 x 16384"
  double calls = 0;     // on one rank of the busiest stage, in one step
  Duration time;        // of one call
  double seconds = 0;   // of all calls
  Ratio of_bound;       // of the dense peak, or of the HBM rate
  bool memory_bound = false;
  TimeTerm term = TimeTerm::kCompute;
  double flops = 0;                 // of one call; of a product or attention
  std::optional<double> intensity;  // operations a byte of its operands, of a product
  Bytes moved;                      // of one call, of a memory-bound kernel
  Evidence evidence = Evidence::kAssumed;
  bool extrapolated = false;
};

struct ExplainedTransfer {
  std::string name;
  TimeTerm exposed_as = TimeTerm::kOther;  // where waiting for it is booked
  double calls = 0;
  GroupShape group;
  CollectivePlan plan;
  Bytes bytes;
  double seconds = 0;         // of all calls, without contention
  double bus_gigabytes = 0;   // a second, as nccl-tests counts; of the message for a send
  double bound_gigabytes = 0; // what the link allows
};

struct Explanation {
  int64_t busiest_stage = 0;
  std::vector<ExplainedKernel> kernels;      // the longest in total first
  std::vector<ExplainedTransfer> transfers;  // the same
  double bubble = 0;         // share of the step
  double bubble_bound = 0;   // the schedule's closed form, as a share of its compute
};

// "TP all-gather", "gather layer": what a transfer is called everywhere.
std::string transfer_name(const Work& work);
// Gigabytes a second with two digits at least: "324", "46", "2.3".
std::string rate_text(double gigabytes);
// nccl-tests' bus bandwidth over size / time: what a rank has to send of the size.
double bus_factor(CollectiveKind kind, int64_t ranks);

Explanation explain_step(const Scenario& scenario, const StepSimulation& step);

// The sizes for which the profile's curves were measured, in one sentence; outside them a kernel is marked.
std::string measured_ranges(const Scenario& scenario);

// At most 80 columns: the verdict, kernels, transfers; and what decides the step, where that was simulated.
std::string explanation_table(const Scenario& scenario, const StepSimulation& step);
std::string explanation_json(const Scenario& scenario, const StepSimulation& step);

}  // namespace herdsim
