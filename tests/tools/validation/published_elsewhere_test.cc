// Steps that others published and that are in no table. No constant is fitted to one, but that the rate of KempnerForge's
// network is read from its 70B (source_facts.cc).
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tools/validation/validation_report.h"

namespace herdsim {
namespace {

constexpr const char* kColumns =
    "id,software,source_where,model,layers,hidden,ffn,heads,kv_heads,vocab,seq_len,gpu,gpus_per_"
    "node,num_gpus,tp,sp,dp,"
    "fsdp_zero,micro_batch,global_batch,grad_accum,precision,recompute,overlap_notes,gpu_power_W,"
    "hbm_GBps,"
    "target_step_time_s\n";

// In per cent, above 0 where too long.
double error_of(const std::string& row) {
  const RowPrediction prediction =
      predict_rows(parse_run_table(kColumns + row + "\n", "elsewhere.csv"), RowParts({}), 0)
          .front();
  EXPECT_TRUE(prediction.error()) << row << prediction.skipped_because;
  return 100 * prediction.error().value_or(1);
}

// pytorch/ao 2210df8e4 docs/source/workflows/training.md: Llama 3 8B on 8 H100 of 500 W and 2.4
// TB/s, compiled, per-op selective recomputation, one sequence a GPU. Earlier readings of the same:
// 5760, 7186 and 6424 (torchtitan 7a04053a7), 6019, 7190 and 6649 tokens a second and GPU
// (pytorch/ao pull request 1793).
TEST(PublishedElsewhere, float8_by_tensor_and_by_row_of_torchao) {
  const auto error = [](const std::string& precision, double tokens_per_second) {
    return error_of(
        "ao,torch-fsdp2,,Llama3-8B,32,4096,14336,32,8,128256,8192,H100,8,8,1,0,8,FSDP2(8),1,8,1," +
        precision + ",selective (op),torch.compile,500,2400," +
        std::to_string(8192 / tokens_per_second));
  };
  EXPECT_NEAR(error("bf16", 6150), 0, 4);
  EXPECT_NEAR(error("fp8", 7689.5), 0, 4);
  EXPECT_NEAR(error("fp8-rowwise", 6768), 0, 4);
}

// KempnerInstitute/KempnerForge e9f918929 benchmarks/weak_scaling_160gpu: its own sweep repeated
// two months later, and carried on to 160 GPUs. What it ran before took 6 to 9 % longer. Left out:
// 70B on 8 GPUs, with 128.5 of 141 GB in use.
TEST(PublishedElsewhere, weak_scaling_of_kempnerforge) {
  struct Point {
    int64_t gpus;
    double seconds;
  };
  const auto error = [](const std::string& sizes, int64_t micro_batch, const Point& p) {
    const int64_t dp = p.gpus / 4;
    return error_of("kf,torch-fsdp2,github KempnerInstitute/KempnerForge@5666d0d161," + sizes +
                    ",8,128256,4096,H200,4," + std::to_string(p.gpus) + ",4,1," +
                    std::to_string(dp) + ",FSDP2(" + std::to_string(dp) + ")," +
                    std::to_string(micro_batch) + "," + std::to_string(4 * micro_batch * dp) +
                    ",4,bf16,full,torch.compile=True,,," + std::to_string(p.seconds));
  };
  for (const Point& p : {Point{8, 4.39}, {32, 4.75}, {64, 4.84}, {128, 4.95}, {160, 4.91}}) {
    EXPECT_NEAR(error("Llama3-13B (KempnerForge),40,5120,17920,40", 4, p), 0, 8) << p.gpus;
  }
  for (const Point& p : {Point{32, 14.03}, {64, 14.63}, {96, 15.07}, {128, 14.98}, {160, 15.32}}) {
    EXPECT_NEAR(error("Llama3-70B (KempnerForge),80,8192,28672,64", 2, p), 0, 8) << p.gpus;
  }
}

}  // namespace
}  // namespace herdsim
