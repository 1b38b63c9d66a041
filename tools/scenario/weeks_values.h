// Messages and values of what only weeks of training need: failures, checkpoints and the store, recovery. A part of
// spec_values.h, whose rules hold here.
#pragma once

#include "tools/scenario/scenario.h"

namespace herdsim::spec {
class Reliability;
class Checkpoint;
class Recovery;
}  // namespace herdsim::spec

namespace herdsim {

void to_message(const ReliabilityRequest& request, spec::Reliability* message);
// But for its size, which follows from the model.
void to_message(const CheckpointRequest& request, spec::Checkpoint* message);
// But for its spares, which follow from the size of the job.
void to_message(const RecoveryRequest& request, spec::Recovery* message);

// But for the rows of the failure log, which the loader reads.
ReliabilityRequest reliability_from_message(const spec::Reliability& message);
CheckpointRequest checkpoint_from_message(const spec::Checkpoint& message);
RecoveryRequest recovery_from_message(const spec::Recovery& message);

}  // namespace herdsim
