// What a simulated step did, as facts an observer may keep: one span an operation and rank.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/time.h"
#include "sim/base/units.h"

namespace herdsim {

// The lanes of a rank, in the order a reader wants them.
enum class Stream : uint8_t {
  kCompute,
  kTp,
  kCp,
  kEp,
  kSendForward,   // activations to the next stage
  kSendBackward,  // gradients to the previous stage
  kReceive,       // arrivals; ordered by the sender
  kDp,
  kHost,  // the process that launches kernels
};
constexpr size_t kStreams = 9;
constexpr std::array<std::string_view, kStreams> kStreamNames = {
    "compute", "tp", "cp", "ep", "send forward", "send backward", "receive", "dp", "host"};

// What a rank is busy with, for the picture of the pipeline.
enum class StepPhase : uint8_t { kUnknown, kForward, kBackward, kOptimizer };
constexpr std::array<std::string_view, 4> kStepPhaseNames = {"", "forward", "backward",
                                                             "optimizer"};

struct Span {
  RankId rank;
  Stream stream = Stream::kCompute;
  Instant begin, end;
  uint32_t name = 0;  // index into StepTrace::names: "forward attention", "all_gather ring simple"
  int32_t micro_batch = -1;  // -1: belongs to no micro-batch
  int32_t chunk = -1;        // virtual stage
  Bytes bytes;               // of a transfer
  Flops flops;               // of a kernel
  // Sends and the receive they end in share a non-zero flow number.
  uint64_t flow = 0;
  StepPhase phase = StepPhase::kUnknown;
};

// A series of samples that holds until the next one.
struct CounterSample {
  Instant at;
  double value = 0;
};

struct Counter {
  RankId rank;  // whose; of the whole cluster where `of_cluster`
  bool of_cluster = false;
  std::string name;  // "NIC out", "memory"
  std::string unit;  // "GB/s", "GB"
  std::vector<CounterSample> samples;
};

// Where a rank lives, for the tracks cluster > pod > node > GPU.
struct RankPlace {
  RankId rank;
  int64_t pod = 0, host = 0, gpu_in_host = 0;
  int64_t tp = 0, cp = 0, pp = 0, dp = 0;
};

// Something of the whole job beside its ranks, on a row of its own: a save that drains to the
// store.
struct ClusterSpan {
  std::string name;  // "save"; spans of one name are one row and do not overlap
  Instant begin, end;
  Bytes bytes;
};

struct StepTrace {
  std::string title;  // scenario name
  std::vector<std::string> names;
  std::vector<RankPlace> ranks;  // the traced ranks, ascending
  std::vector<Span> spans;  // by rank, then stream, then begin; spans of one stream never overlap
  std::vector<Counter> counters;
  std::vector<ClusterSpan> of_cluster = {};  // by begin
};

// What is wrong with a trace, or "" where it keeps every promise above: ranks ascending and known,
// names in range, no span that ends before it begins or overlaps its neighbour on the stream,
// samples finite and in order, no receive that ends before its send begins; likewise spans of the
// cluster by name.
// Complexity: linear in spans and samples, n log n in flows.
std::string first_fault(const StepTrace& trace);

}  // namespace herdsim
