// Weeks of training for people, for programs and for spreadsheets.
//
//   std::cout << run_table(result);
//
// Figures are means over replicas; bands and quantiles say so.
#pragma once

#include <span>
#include <string>

#include "sim/metrics/run_result.h"

namespace herdsim {

// At most 80 columns: effective training time with its spread, where the time goes, interruptions
// by class with the Poisson band one run of the campaign falls into, what costs most (where it was
// asked), tokens, GPU-hours and energy.
std::string run_table(const RunResult& result);

// One object with the documented keys, and beside them: kept_step_share, gpu_hours, gpu_energy_mwh,
// restarts, deepest_shortage_hosts, undetected_corruptions, interruptions.band_95, contributions,
// without_stragglers, checkpoint (with the intervals of Young and Daly), days_to_tokens,
// expected_mean_time_between_failures_s.
std::string run_json(const RunResult& result);
// An array of them.
std::string runs_json(std::span<const RunResult> results);

// A line of column names and a line a result (RFC 4180); units are in the names.
std::string runs_csv(std::span<const RunResult> results);
// A line a replica: what a distribution is plotted from.
std::string replicas_csv(const RunResult& result);

}  // namespace herdsim
