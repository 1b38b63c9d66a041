// Work, GPUs, days and rate on the back of an envelope: three are given, the fourth follows.
//
//   3e24 FLOPs in 90 days at 55.2 % of the bf16 peak       707 GPUs
//   1e13 tokens on 1,024 GPUs at 697 tokens/s a GPU        162.2 days
//   3.8e25 FLOPs on 16,384 GPUs in 54 days                 497 TFLOP/s a GPU, 50.3 % of the peak
//   6.35e24 FLOPs in 6.4e6 GPU-hours                       276 TFLOP/s a GPU, 27.9 % of the peak
//
// And a rate in the units of others: TFLOP/s, tokens, MFU of each dense peak, each way to count.
//
// No failures, no checkpoints, no restarts: the days of a `plan` have them. What no published run
// has reached is said beside the line.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sim/models/device_profile.h"
#include "tools/study/plan_cost.h"

namespace herdsim {

struct BudgetQuestion {
  // Zero is not given. Work: FLOPs, or tokens with what a token takes or a rate in tokens.
  double flops = 0, tokens = 0, flops_per_token = 0;
  // Of the same work with attention counted, causal and over the full square; 0: not known.
  double flops_per_token_causal = 0, flops_per_token_full = 0;
  // The rate of a GPU, one of them; none: asked for.
  double mfu = 0, tflops_per_gpu = 0, tokens_per_second_per_gpu = 0;
  double peak_tflops = 0;  // instead of the profile's
  std::vector<int64_t> gpus;
  double days = 0;
  double gpu_hours = 0;  // instead of GPUs and days
  Prices prices;
  DataType precision = DataType::kBf16;

  // Neither work nor what it takes: a rate in other units.
  bool is_of_rate_alone() const {
    return flops <= 0 && gpus.empty() && days <= 0 && gpu_hours <= 0 &&
           (tokens_per_second_per_gpu > 0 ? flops_per_token > 0 : tokens <= 0) &&
           mfu + tflops_per_gpu + tokens_per_second_per_gpu > 0;
  }
};

struct BudgetLine {
  std::string basis;  // "bf16 dense peak, 989.4 TFLOP/s"
  std::string asked;  // what follows from the rest: "GPUs", "days", "rate"
  double gpus = 0, days = 0;
  std::optional<double> tflops_per_gpu, mfu;  // absent where the rate is in tokens alone
  double gpu_hours = 0, dollars = 0;
  std::vector<std::string> notes;
};

// What a token of the scenario takes, each way to count, and in which precision.
void count_flops(const Scenario& scenario, BudgetQuestion& question);

// Throws: SpecError for too little or too much to solve, and rates above the dense peak.
std::vector<BudgetLine> budget_lines(const BudgetQuestion& question, const DeviceProfile& profile);

// A rate in other units: one way to count FLOPs, one dense peak.
struct RateLine {
  std::string counted;  // "6 a parameter and token", or "" for a rate in FLOPs
  std::string peak;     // "bf16 dense, 989.4 TFLOP/s"
  double tflops_per_gpu = 0, mfu = 0, tokens_per_second_per_gpu = 0;  // 0: not known
  std::string note = {};
};

// Requires: question.is_of_rate_alone(). Throws: SpecError as budget_lines().
std::vector<RateLine> rate_lines(const BudgetQuestion& question, const DeviceProfile& profile);
std::string rate_table(const std::vector<RateLine>& lines);

std::string budget_table(const std::vector<BudgetLine>& lines, bool dollars);

}  // namespace herdsim
