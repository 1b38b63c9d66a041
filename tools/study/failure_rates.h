// How often a job of each size fails, and what closed forms advise: the arithmetic that people do
// before they simulate, from the same rates, sizes and phases as `run`.
//
//   herdsim rates llama3-405b-16384 --gpus 1024,16384,131072 --set reliability.gpu_mtbf_h=50000
//
// Not in it: silent corruption's latency, clustering, slow steps, spares that run out.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/metrics/run_result.h"
#include "tools/scenario/scenario.h"

namespace herdsim {

struct RateRow {
  int64_t gpus = 0, hosts = 0;
  double mtbf_h = 0;  // of everything that stops the job unplanned; 0: nothing does
  double failures_per_day = 0;
  CheckpointFigures checkpoint;  // zeros for a policy without remote store
  double effective = 0;          // exact for exponential failures, restarts that can fail too
  double effective_young = 0;    // the same at Young's interval
  double hosts_in_repair = 0;    // mean
  int64_t spares_p99 = 0;        // that suffice in 99 % of the time: M/G/infinity
};

struct RateReport {
  std::string scenario;
  double step_s = 0;
  std::vector<RateRow> rows;
  std::vector<std::string> warnings;
};

// `gpus` in the order given, each with the machine, policies and step time of the scenario.
// Throws: SpecError as resolve() does.
RateReport failure_rates(const Scenario& scenario, const std::vector<int64_t>& gpus, Duration step);

std::string rates_table(const RateReport& report);
std::string rates_json(const RateReport& report);
std::string rates_csv(const RateReport& report);

}  // namespace herdsim
