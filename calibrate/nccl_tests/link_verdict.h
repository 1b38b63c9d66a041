// Is this bandwidth normal? What a test reached, over what its links can carry, in words.
//
// All bounds are of the bus bandwidth, with n ranks on N nodes, g = n / N on each; V is what a
// GPU's NVLink carries in one direction, B what its NIC does:
//
//   inside a node   V; an all-reduce whose sums are made in the switch (NVLS) V 2(n-1) / (n+1),
//   since
//                   a port then carries a vector and an n-th of it instead of 2(n-1)/n vectors
//   across nodes    a ring: the lesser of g B and V g / (g-1);
//                   an all-reduce by trees: what must leave a node, g B (n-1)/n N/(N-1), and the
//                   port, V 2(n-1)/n g/(g+1);   all-to-all: B (n-1) / (n-g);   send/recv: B
//
// A value above the ring's bound is accepted where trees or the switch explain it: then neither is
// the speed of a wire, and such a curve stands for its own kind and group alone.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "calibrate/nccl_tests/nccl_tests_log.h"

namespace herdsim {

// A GPU as its links go: the same name on another board is another machine.
struct GpuLinks {
  std::string_view driver_name;  // part of what the driver prints; the first row that fits counts
  std::string_view name;
  double nvlink = 0;         // GB/s a GPU, one direction; of a bridge between two where `bridge`
  double nic = 0;            // GB/s a GPU that its reference machine has; 0: none
  bool bridge = false;       // PCIe card: NVLink only between neighbours
  bool switch_sums = false;  // NVLS
  int64_t most_on_a_node = 8;
  std::string_view profile;  // of the catalogue, or empty
};

// nullptr where the text names no GPU of the table; `gpu` may be a profile of the catalogue.
const GpuLinks* gpu_links(std::string_view gpu);
std::vector<std::string> known_gpus();

struct VerdictOptions {
  double nic_gigabits_per_second = 0;  // 0: of the GPU's reference machine
  std::string used_as;                 // the profile that shall use it, or empty
};

struct LinkVerdict {
  double bus_bandwidth = 0;  // the best of all sizes, GB/s
  Bytes at;
  double bound = 0;                     // GB/s; 0 where unknown
  std::string derivation;               // of the bound, or why there is none
  bool above_ring = false;              // more than a ring can carry
  double smallest_us = 0;               // the shortest time of a size above zero
  double launch_us = 0;                 // of rows of zero bytes; 0 without one
  std::vector<std::string> fine;        // unusual and explained
  std::vector<std::string> suspicious;  // to be looked at before the numbers are used
  std::vector<std::string> loud;        // results were wrong

  double share() const { return bound > 0 ? bus_bandwidth / bound : 0; }
};

// Requires: the test has rows.
LinkVerdict judge_links(const NcclTest& test, const VerdictOptions& options = {});

}  // namespace herdsim
