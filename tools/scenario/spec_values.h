// Between messages of the scenario language and the values that the simulator works with.
//
// The defaults of the language are those of the structs (SoftwareStack{}, ClusterSpec{}, ...): they
// are written there and nowhere else, and default_spec() is how they get into an effective
// scenario.
#pragma once

#include "tools/scenario/scenario.h"

namespace herdsim::spec {
class Scenario;
class Model;
class Software;
}  // namespace herdsim::spec

namespace herdsim {

// Every field that has a default, set to it.
void default_spec(spec::Scenario* message);

// Requires: every number is within its range. Leaves out what the profile's loader and the
// effective text fill in.
Scenario scenario_from_message(const spec::Scenario& message);
ModelArchitecture model_from_message(const spec::Model& message);
SoftwareStack software_from_message(const spec::Software& message);

}  // namespace herdsim
