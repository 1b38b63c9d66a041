// Which units of a model chunk gather their parameters, and reduce their gradients, together.
//
// Megatron's distributed data parallel fills a bucket in the order of the backward pass, unit by
// unit, until it holds SoftwareStack::dp_bucket_parameters, or dp_bucket_parameters_per_rank times
// the ranks that share them, if that is more. A bucket is reduced when its last gradient is there
// and gathered before its first unit runs, so the first gather and the last reduction, which
// nothing hides, are of a whole bucket. 0 parameters: every unit is a bucket.
//
// The parts of FSDP that gather and reduce in every pass have their own unit, the layer: they make
// no use of buckets.
#pragma once

#include <vector>

#include "workloads/step_work.h"

namespace herdsim {

// Of one model chunk. Buckets are numbered in forward order, without gaps.
struct ChunkBuckets {
  std::vector<size_t> of_unit;  // by unit, in forward order: never falls
  std::vector<std::vector<WorkId>> gather,
      reduce;  // by bucket; one after another, none among one rank
};

// By model chunk, of `units` each in forward order. Adds the work of buckets with several units to
// `works`, once for alike buckets. Where the stack has dp_bucket_whole_chunks, all chunks but the
// first are one bucket each.
std::vector<ChunkBuckets> parameter_buckets(const WorkloadSpec& spec,
                                            const std::vector<std::vector<UnitKind>>& units,
                                            const StepWork& work, TypedVector<WorkId, Work>& works);

}  // namespace herdsim
