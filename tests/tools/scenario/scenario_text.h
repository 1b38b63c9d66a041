// Scenarios as text for tests, and what is wrong with them.
#pragma once

#include <string>
#include <vector>

#include "sim/base/error.h"
#include "tools/scenario/scenario.h"

namespace herdsim {

// Llama 3 405B on 16,384 GPUs, without names in the catalogue of scenarios.
extern const char kLargeScenario[];

// The message of the SpecError, "" where there is none.
std::string faults_of(const std::string& text, const std::vector<std::string>& sets = {});
// The faults themselves.
std::vector<Fault> fault_list(const std::string& text, const std::vector<std::string>& sets = {});

// The text without its comments, which say where a field comes from.
std::string without_comments(const std::string& text);

}  // namespace herdsim
