// Results with known content for the printers.
#pragma once

#include "sim/metrics/step_result.h"

namespace herdsim {

// Shaped like a step of Llama 3 405B on 16,384 GPUs; every figure is made up.
StepResult large_step();

// Eight GPUs, no pipeline, memory that does not fit, an MFU above one and a name that needs
// quoting.
StepResult implausible_step();

}  // namespace herdsim
