// Host processes that lose their cores for a while: other work on the node, too few cores for the
// threads of NCCL and of the loader.
//
// A collective starts when the last of its ranks has launched it, so it waits wherever one of them
// is stalled: noise that is rare on one host is the rule for many (F. Petrini, D. Kerbyson,
// S. Pakin, "The Case of the Missing Supercomputer Performance", SC 2003). Where each of n hosts is
// stalled with probability p for a time d when a collective is launched, it waits, on the mean,
//
//   d (1 - (1 - p)^n)
//
// as if no two stalls followed each other.
#pragma once

#include <cmath>
#include <cstdint>

namespace herdsim {

struct HostStalls {
  double probability = 0;      // of a rank, at the launch of a collective
  double microseconds = 6000;  // assumed, 3000 to 12000: slices of 3 ms of Linux' scheduler

  friend bool operator==(const HostStalls&, const HostStalls&) = default;
};

// Mean wait of a collective of `ranks`, microseconds. Requires: ranks >= 1.
inline double stall_microseconds(const HostStalls& stalls, int64_t ranks) {
  return stalls.microseconds * (1 - std::pow(1 - stalls.probability, static_cast<double>(ranks)));
}

}  // namespace herdsim
