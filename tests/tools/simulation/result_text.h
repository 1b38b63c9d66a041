// All that a step's result says, as text that two results are compared by.
#pragma once

#include <string>

#include "sim/metrics/step_result.h"

namespace herdsim {

// Times, memory and accounts by their fingerprint; links and collisions word by word.
inline std::string text_of(const StepResult& result) {
  std::string text = result.fingerprint();
  for (const LinkUse& use : result.links) {
    text += "\n" + use.tier + " " + use.first + " " + std::to_string(use.links) + " " +
            std::to_string(use.carried.count()) + " " + use.loads_text();
  }
  for (const Collisions& c : result.collisions) {
    text += "\n" + c.transfers + " " + std::to_string(c.slowest_factor) + " " +
            std::to_string(c.connections);
  }
  return text;
}

}  // namespace herdsim
