// Peaks that torchtitan printed (pytorch/torchtitan benchmarks/llama3_h100_202412_torchtitan.md,
// tables 1 to 6): what the caching allocator reserved, H100 of 96 GB, Llama 3.1, FSDP2, full
// recomputation but for the rows of 8B on one sequence length. Pipelines keep parameters gathered
// and sum gradients over micro-batches (FSDP_KEEP), with as many micro-batches as stages, its
// default.
#include <gtest/gtest.h>

#include <cmath>

#include "sim/base/error.h"
#include "tools/scenario/load_scenario.h"
#include "workloads/memory/memory_footprint.h"

namespace herdsim {
namespace {

struct MemoryRow {
  const char* name;
  const char* base;
  int64_t gpus, tp, cp, pp, virtual_stages, dp, micro_batch, global_batch, sequence;
  const char* shard;
  const char* recompute;
  double measured;         // GiB
  double tolerance = 0.1;  // of it
};

// With vanilla TP, DTensor keeps whole copies of what it gathers in a layer that is made again: of
// 16 sequences 2 GB each.
constexpr double kWholeCopies = 0.25;
constexpr MemoryRow kRows[] = {
    {"8B, FSDP 8", "llama3-8b-1024", 8, 1, 1, 1, 1, 8, 2, 16, 8192, "ZERO3", "HALF_THE_PRODUCTS",
     77.0},
    {"8B, FSDP 128", "llama3-8b-1024", 128, 1, 1, 1, 1, 128, 2, 256, 8192, "ZERO3",
     "HALF_THE_PRODUCTS", 62.0},
    {"8B, CP 1", "llama3-8b-1024", 8, 1, 1, 1, 1, 8, 1, 8, 32768, "ZERO3", "FULL", 83.9},
    {"8B, CP 2", "llama3-8b-1024", 8, 1, 2, 1, 1, 4, 1, 4, 65536, "ZERO3", "FULL", 84.2},
    {"8B, CP 4", "llama3-8b-1024", 8, 1, 4, 1, 1, 2, 1, 2, 131072, "ZERO3", "FULL", 84.0},
    {"8B, CP 8", "llama3-8b-1024", 8, 1, 8, 1, 1, 1, 1, 1, 262144, "ZERO3", "FULL", 84.5},
    {"70B, TP 8", "llama3-70b-8192", 256, 8, 1, 1, 1, 32, 16, 512, 8192, "ZERO3", "FULL", 71.9,
     kWholeCopies},
    {"405B, 1F1B", "llama3-405b-16384", 512, 8, 1, 8, 1, 8, 4, 256, 8192, "FSDP_KEEP", "FULL",
     82.5},
    {"405B, interleaved", "llama3-405b-16384", 512, 8, 1, 8, 2, 8, 2, 256, 8192, "FSDP_KEEP",
     "FULL", 72.7},
    {"405B, CP 1", "llama3-405b-16384", 512, 8, 1, 8, 1, 8, 1, 64, 32768, "FSDP_KEEP", "FULL",
     75.3},
    {"405B, CP 2", "llama3-405b-16384", 512, 8, 2, 8, 1, 4, 1, 32, 65536, "FSDP_KEEP", "FULL",
     75.9},
    {"405B, CP 4", "llama3-405b-16384", 512, 8, 4, 8, 1, 2, 1, 16, 131072, "FSDP_KEEP", "FULL",
     77.1},
    {"405B, CP 8", "llama3-405b-16384", 512, 8, 8, 8, 1, 1, 1, 8, 262144, "FSDP_KEEP", "FULL",
     84.9},
};

Scenario scenario_of(const MemoryRow& row) {
  const auto set = [](const char* field, int64_t value) {
    return std::string(field) + "=" + std::to_string(value);
  };
  return load_scenario(
      row.base,
      {set("gpus", row.gpus), set("parallel.tp", row.tp), set("parallel.cp", row.cp),
       set("parallel.pp", row.pp), set("parallel.dp", row.dp),
       set("parallel.virtual_stages", row.virtual_stages),
       set("parallel.micro_batch", row.micro_batch), set("training.global_batch", row.global_batch),
       set("training.sequence_length", row.sequence), set("recovery.spares", 0),
       std::string("training.schedule=") + (row.virtual_stages > 1 ? "interleaved-1f1b" : "1f1b"),
       std::string("parallel.shard=") + row.shard,
       std::string("training.recompute=") + row.recompute, "parallel.context=RING",
       "training.precision=FP8", "software={base: \"torch-fsdp2\"}"});
}

double peak_gibibytes(const Scenario& s) {
  const ScheduleRow& schedule = *find_schedule(s.training.schedule);
  const ScheduleShape shape{
      .stages = s.plan.pp,
      .micro_batches = s.training.global_batch / (s.plan.dp * s.plan.micro_batch),
      .virtual_stages = s.plan.virtual_stages};
  const std::vector<StageLayout> layouts = layout_stages(s.model, s.plan, schedule);
  Bytes peak;
  for (const StageMemory& m :
       memory_footprint({s.model, s.plan, s.training, s.software, schedule, shape, layouts})) {
    peak = std::max(peak, m.peak);
  }
  return static_cast<double>(peak.count()) / (1 << 30);
}

TEST(PublishedMemory, peaks_of_torchtitan_are_within_a_tenth) {
  for (const MemoryRow& row : kRows) {
    const double predicted = peak_gibibytes(scenario_of(row));
    std::printf("%-18s %5.1f GiB measured, %5.1f here, %+3.0f %%\n", row.name, row.measured,
                predicted, 100 * (predicted / row.measured - 1));
    EXPECT_NEAR(predicted, row.measured, row.tolerance * row.measured) << row.name;
  }
}

// Published with the run: it trained, so it fitted.
TEST(PublishedMemory, deepseek_v3_fits_its_gpus_as_its_report_says) {
  const Scenario s = load_scenario("deepseek-v3-2048");
  EXPECT_LT(peak_gibibytes(s), static_cast<double>(s.profile.hbm.count()) / (1 << 30));
  const Scenario bf16 = load_scenario(
      "deepseek-v3-2048", {"training.recompute=ELEMENTWISE",
                           "training.recompute_modules=", "software.fp8_keeps_inputs=false",
                           "software.fp8_keeps_activation_inputs=false"});
  EXPECT_GT(peak_gibibytes(bf16), 1.5 * peak_gibibytes(s)) << "kept in bf16 it does not";
}

}  // namespace
}  // namespace herdsim
