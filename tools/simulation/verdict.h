// What limits a step, in one sentence with the physical bound.
#pragma once

#include <string>

#include "tools/scenario/scenario.h"
#include "tools/simulation/simulate_step.h"

namespace herdsim {

struct Verdict {
  TimeTerm term = TimeTerm::kCompute;  // kCompute: nothing but the products themselves
  double of_step = 0;                  // what the mean rank spends in it
  double gain = 0;                     // how much shorter the step is without it, as a share: an upper bound
  std::string sentence;
};

// The loss without which the step would be shortest (StepSimulation::without). Not the largest of the account: where one
// rank is slow, the others book its time as bubble, and only taking the slowness away shows what it costs. Where no loss
// gives kLeastGain, products limit the step. Of a job among others: what sharing costs (kOther), and no more.
// Requires: the step was simulated with `without`; better with its critical path, from which achieved rates are taken.
inline constexpr double kLeastGain = 0.02;
Verdict verdict(const Scenario& scenario, const StepSimulation& step);

}  // namespace herdsim
