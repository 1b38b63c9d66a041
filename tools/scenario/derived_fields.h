// Fields that are left out and follow from others: dp from gpus, kv_heads from heads, spares from the size of the job.
#pragma once

#include <string>

#include "tools/scenario/field_origins.h"

namespace herdsim::spec {
class Scenario;
class Model;
}  // namespace herdsim::spec

namespace herdsim {

// Requires: defaults are in place. Ensures: origins say the formula of each; what cannot follow is a fault of the
// report.
void derive_fields(spec::Scenario* message, SpecReport* report);
// Of a model alone; `prefix` is what its fields are called by, "model." in a scenario.
void derive_model_fields(spec::Model* model, const std::string& prefix, SpecReport* report);

}  // namespace herdsim
