#include "sim/reliability/corruption_detector.h"

namespace herdsim {
namespace {

constexpr double kHour = 3600;

constexpr RandomDuration exponential(double mean_seconds) {
  return {.shape = DurationShape::kExponential, .mean_seconds = mean_seconds};
}

std::vector<CorruptionDetector> make_rows() {
  return {
      {.name = "loss_watch",
       .help = "somebody sees the loss or the gradient norm jump",
       .arithmetic_recall = 1,
       .transfer_recall = 1,
       .source = "assumed: hours; the published count is of corruptions that were noticed, so "
                 "recall is 1 by definition"},
      {.name = "transfer_checksum",
       .help = "checksums of what collectives move; blind to wrong arithmetic",
       .transfer_recall = 1,
       .latency = exponential(10),
       .step_overhead = 0.002,
       .source = "assumed cost"},
      {.name = "parameter_checksum",
       .help = "checksums of stored parameters; blind to wrong arithmetic",
       .transfer_recall = 0.5,
       .latency = exponential(600),
       .step_overhead = 0.001,
       .source = "assumed"},
      {.name = "replica_comparison",
       .help = "parameters compared between data-parallel replicas: sees the optimizer, "
               "not gradients that were summed already",
       .arithmetic_recall = 0.2,
       .transfer_recall = 0.9,
       .latency = exponential(600),
       .step_overhead = 0.003,
       .source = "assumed"},
      {.name = "block_recompute",
       .help = "a block computed again on another GPU and compared",
       .arithmetic_recall = 0.9,
       .latency = exponential(1800),
       .step_overhead = 0.0165,
       .evidence = Evidence::kPublished,
       .source =
           "TrainSDC: recomputation and monitoring cost 1.65-6.76 %; recall and latency assumed"},
      {.name = "periodic_diagnostics",
       .help = "the vendor's diagnostic, once a day",
       .arithmetic_recall = 0.7,
       .latency = exponential(12 * kHour),
       .step_overhead = 0.0035,
       .evidence = Evidence::kPublished,
       .source = "ByteRobust, SOSP'25: 70 % recall of the offline diagnostic; five minutes a day "
                 "assumed"},
  };
}

}  // namespace

const std::vector<CorruptionDetector>& corruption_detectors() {
  static const std::vector<CorruptionDetector> rows = make_rows();
  return rows;
}

const CorruptionDetector* find_corruption_detector(std::string_view name) {
  for (const CorruptionDetector& row : corruption_detectors()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

}  // namespace herdsim
