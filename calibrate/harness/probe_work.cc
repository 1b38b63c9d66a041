#include "calibrate/harness/probe_work.h"

#include "calibrate/profile/collective_time.h"

namespace herdsim {
namespace {

double as_double(Bytes bytes) { return static_cast<double>(bytes.count()); }

struct WorkOf {
  int64_t ranks;

  ProbeWork operator()(const GemmShape& g) const { return {.flops = g.flops().count()}; }
  ProbeWork operator()(const AttentionShape& a) const { return {.flops = a.flops().count()}; }
  ProbeWork operator()(const MemoryTraffic& s) const { return {.bytes = as_double(s.moved)}; }
  ProbeWork operator()(const CollectiveProbe& c) const {
    return {.bytes = as_double(c.bytes) * bus_factor(c.kind, c.ranks > 0 ? c.ranks : ranks)};
  }
  ProbeWork operator()(const CopyProbe& c) const { return {.bytes = as_double(c.bytes)}; }
  ProbeWork operator()(const PeerCopyProbe& c) const { return {.bytes = as_double(c.bytes)}; }
  ProbeWork operator()(const SharingProbe& s) const { return (*this)(s.product); }
  ProbeWork operator()(const LaunchProbe& /*launch*/) const { return {}; }
  ProbeWork operator()(const PeakProbe& /*peak*/) const { return {.flops = kPeakProbeFlops}; }
};

}  // namespace

ProbeWork work_of(const Probe& probe, int64_t ranks) { return std::visit(WorkOf{ranks}, probe); }

}  // namespace herdsim
