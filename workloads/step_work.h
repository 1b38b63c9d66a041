// The pieces of work that the programs of all stages share: passes of each kind of unit, what
// gathers and reduces its parameters, messages between stages, the end of the step.
//
// A unit is a layer, the embedding or the head: what is gathered and reduced as a whole over the
// data-parallel ranks.
//   state of                 gathered over    reduced over
//   plain replicas           -                all-reduce, kGradient
//   ZeRO, FSDP               kGradient        reduce-scatter, kGradient
//   HSDP                     kShard           reduce-scatter, kShard; all-reduce, kReplica
//   experts, in each case    kExpertGradient in kGradient's place
#pragma once

#include <array>
#include <optional>
#include <vector>

#include "workloads/layer_work.h"
#include "workloads/schedules/schedule.h"

namespace herdsim {

enum class UnitKind : uint8_t {
  kEmbedding,
  kLayer,  // with experts, where the model has them
  kRecomputedLayer,
  kDenseLayer,  // of a mixture of experts: one of the first, without
  kRecomputedDenseLayer,
  kHead,
  kTiedHead,  // whose matrix is the embedding of the same stage
};
constexpr size_t kUnitKinds = 7;

inline bool is_layer(UnitKind unit) {
  return unit >= UnitKind::kLayer && unit <= UnitKind::kRecomputedDenseLayer;
}

// On one rank, before any sharding.
struct UnitParameters {
  int64_t dense = 0, experts = 0;
};
UnitParameters unit_parameters(const WorkloadSpec& spec, UnitKind kind);

// The host's work to launch one pass of a unit; none where it takes no time.
struct HostWork {
  std::optional<WorkId> forward, backward;
};

struct StepWork {
  std::array<PassTemplates, kUnitKinds> passes;
  std::array<std::vector<WorkId>, kUnitKinds> gather,
      reduce;  // one after another; none among one rank
  WorkId send_forward, send_backward, receive_forward, receive_backward;
  WorkId gradient_norm, host;
  std::optional<WorkId> norm_gradient;  // of one norm, over the tensor-parallel ranks
  std::optional<WorkId> read_message;   // of the host, which waits for a message
  // Of the two copies of a tied embedding, on the first and the last stage.
  std::optional<WorkId> tied_gradients;
  std::array<HostWork, kUnitKinds> launch;
};

StepWork step_work(const WorkloadSpec& spec, const RankGrid& grid,
                   TypedVector<WorkId, Work>& works);

}  // namespace herdsim
