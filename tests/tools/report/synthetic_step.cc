#include "tests/tools/report/synthetic_step.h"

#include <initializer_list>
#include <utility>

namespace herdsim {

StepResult large_step() {
  StepResult r;
  r.scenario = "llama3-405b-16384";
  r.gpus = 16'384;
  r.step_time = nanoseconds(5'123'456'789);
  r.tokens_per_step = 16'777'216;
  r.model_flops_causal = Flops(3.42e19);
  r.model_flops_full = Flops(3.56e19);
  r.peak = teraflops(989.4);
  r.dtype = "bf16";
  int64_t left = r.gpus * r.step_time.nanoseconds();
  for (const auto& [term, per_mille] :
       std::initializer_list<std::pair<TimeTerm, int64_t>>{{TimeTerm::kMemoryBound, 92},
                                                           {TimeTerm::kExposedTp, 131},
                                                           {TimeTerm::kExposedPp, 11},
                                                           {TimeTerm::kExposedDp, 23},
                                                           {TimeTerm::kBubble, 84},
                                                           {TimeTerm::kOptimizer, 3},
                                                           {TimeTerm::kOther, 17}}) {
    const int64_t share = r.gpus * r.step_time.nanoseconds() / 1000 * per_mille;
    r.account_rank_nanoseconds[static_cast<size_t>(term)] = share;
    left -= share;
  }
  r.account_rank_nanoseconds[static_cast<size_t>(TimeTerm::kCompute)] = left;
  for (int64_t stage = 0; stage < 16; ++stage) {
    const Bytes activations = megabytes(41'000 - 2'000 * stage);
    const Bytes logits = stage == 15 ? megabytes(4'210) : bytes(0);
    r.memory.push_back(
        {.stage = stage,
         .peak = gigabytes(29) + activations + logits,
         .moment = stage < 15 ? "backward of micro-batch 0, chunk 7" : "loss of micro-batch 3",
         .weights = megabytes(6'330),
         .gradients = megabytes(12'660),
         .optimizer = megabytes(610),
         .activations = activations,
         .logits = logits,
         .communication = megabytes(1'400),
         .overhead = gigabytes(8)});
  }
  r.memory_capacity = megabytes(85'000);
  r.simulated_ranks = 128;
  r.events = 1'234'567;
  r.wall_seconds = 0.75;
  return r;
}

StepResult implausible_step() {
  StepResult r;
  r.scenario = "eight, \"fast\"";
  r.gpus = 8;
  r.step_time = milliseconds(100);
  r.tokens_per_step = 4'096;
  r.model_flops_causal = Flops(1e15);
  r.model_flops_full = Flops(1.1e15);
  r.peak = teraflops(989.4);
  r.dtype = "bf16";
  r.account_rank_nanoseconds[static_cast<size_t>(TimeTerm::kCompute)] = 8 * 100'000'000;
  r.memory = {{.stage = 0,
               .peak = gigabytes(90),
               .moment = "optimizer",
               .weights = gigabytes(60),
               .optimizer = gigabytes(30)}};
  r.memory_capacity = gigabytes(80);
  r.simulated_ranks = 8;
  r.events = 99;
  r.wall_seconds = 0.001;
  r.warnings = {
      "kernel times were extrapolated beyond the measured range of the profile for two of seven "
      "shapes"};
  return r;
}

}  // namespace herdsim
