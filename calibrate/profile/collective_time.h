// From the time of a collective to its bus bandwidth, as nccl-tests defines it.
#pragma once

#include <array>
#include <string_view>

#include "sim/models/device_profile.h"

namespace herdsim {

// In the order of the file format's enumeration.
inline constexpr std::array<std::string_view, 5> kCollectiveCurveKinds = {
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "send_recv"};

// Bytes that pass a rank's port for each byte of "size": 2(n-1)/n for an all-reduce, (n-1)/n for
// all-gather, reduce-scatter and all-to-all, 1 for send/recv.
inline double bus_factor(std::string_view kind, int64_t ranks) {
  if (kind == "send_recv") return 1.0;
  const double share = static_cast<double>(ranks - 1) / static_cast<double>(ranks);
  return kind == "all_reduce" ? 2.0 * share : share;
}

// Requires: time above zero.
inline CollectiveCurve::Point collective_point(std::string_view kind, int64_t ranks, Bytes size,
                                               Duration time) {
  const double bus = static_cast<double>(size.count()) * bus_factor(kind, ranks) / time.seconds();
  return {size, bytes_per_second(bus), time};
}

}  // namespace herdsim
