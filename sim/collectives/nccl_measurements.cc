#include "sim/collectives/nccl_measurements.h"

namespace herdsim {
namespace {

SizeCurve flat(double value) {
  SizeCurve curve;
  curve.values.fill(value);
  return curve;
}

}  // namespace

void add_h100_corrections(NcclTuning& tuning) {
  CollectiveCorrection none{.efficiency = flat(1),
                            .fill_microseconds = flat(0),
                            .least = kibibytes(1),
                            .most = gibibytes(16),
                            .most_ranks = 8192};
  for (auto& kind : tuning.in_node) kind.fill(none);
  tuning.tree = tuning.ring = tuning.ring_one_rank_a_node = none;
  tuning.all_to_all = tuning.send_recv = none;
}

}  // namespace herdsim
