#include <cstdio>

#include "tools/scenario/load_scenario.h"
#include "tools/simulation/simulate_step.h"

int main() {
  const herdsim::Scenario scenario = herdsim::load_scenario("llama3-8b-1024");
  const herdsim::StepResult step = herdsim::simulate_step(scenario, {}).result;
  std::printf("%.9f\n", step.step_time.seconds());
}
