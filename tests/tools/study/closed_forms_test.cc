#include "tools/study/closed_forms.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>

#include "workloads/schedules/schedule.h"

namespace herdsim {
namespace {

// A public whiteboard budget of Llama 3 70B on H100s, as printed. It counts NVLink in both
// directions and the NIC in one.
constexpr double kParameters = 70.55e9;
constexpr double kTokens = 15e12;
constexpr double kFfn = 28'672, kHidden = 8'192, kLayers = 80;
const FlopRate kH100 = teraflops(989), kTpu = teraflops(459);
const double kNvlink = flops_per_byte(kH100, gigabytes_per_second(900));
const double kNic = flops_per_byte(kH100, gigabytes_per_second(50));
const double kIci = flops_per_byte(kTpu, gigabytes_per_second(180));
constexpr double kRate = 0.40 * 989e12;
constexpr double kGpus = 8'960;
constexpr double kBatch = 4e6;

struct Printed {
  const char* step;
  const char* printed;
  double ours;
  const char* form = "{:.0f}";  // of the printed digits
  const char* follows = "";     // empty: it does; otherwise what does
};

const std::vector<Printed>& worked_example() {
  const double flops = training_flops(kParameters, kTokens);
  const double gpu_hours = training_days(flops, 1, kRate) * 24;
  const StateLedger ledger;
  const double shards = 2'048 * 4;
  // Two bf16 tensors of the hidden width a layer, split over TP: the printed step does not say.
  const double activations = kBatch / 2'048 * kHidden * kLayers * 2 * 2 / 4;
  static const std::vector<Printed> kSteps = {
      {"alpha of NVLink", "1099", kNvlink},
      {"alpha of 400G", "19780", kNic},
      {"alpha of v5p", "2550", kIci},
      {"weights, GB", "141", kParameters * ledger.weights * 1e-9},
      {"gradients, GB", "141", kParameters * ledger.gradients * 1e-9},
      {"master, GB", "282", kParameters * ledger.master * 1e-9},
      {"first moment, GB", "282", kParameters * ledger.first_moment * 1e-9},
      {"second moment, GB", "282", kParameters * ledger.second_moment * 1e-9},
      // The sum of the rounded parts; the parts sum to 1,128.8.
      {"state, GB", "1128", kParameters * ledger.bytes_a_parameter() * 1e-9, "{:.0f}", "1129"},
      // 8e9 is 10 bytes a parameter.
      {"largest model on 80 GB, billions", "8", largest_model_parameters(gigabytes(80)) * 1e-9,
       "{:.0f}", "5"},
      {"total FLOPs", "6.35e+24", flops, "{:.2e}"},
      {"days on 8,960", "20.7", training_days(flops, 8'960, kRate), "{:.1f}"},
      {"days on 16,000", "11.6", training_days(flops, 16'000, kRate), "{:.1f}"},
      {"days on 32,000", "5.8", training_days(flops, 32'000, kRate), "{:.1f}"},
      {"GPU-hours, millions", "4.46", gpu_hours * 1e-6, "{:.2f}"},
      {"millions of dollars at 2", "8.9", gpu_hours * 2 * 1e-6, "{:.1f}"},
      {"millions of dollars at 0.6", "2.7", gpu_hours * 0.6 * 1e-6, "{:.1f}"},
      {"TP limit on H100", "26", tensor_parallel_limit(kFfn, kNvlink)},
      {"TP limit on v5p", "11", tensor_parallel_limit(kFfn, kIci)},
      {"least F for TP 16 over 400G", "316480", tensor_parallel_least_ffn(16, kNic)},
      // sqrt(2498) is 50, and 1,619 takes a batch of 4 * 2^20 tokens.
      {"best FSDP ways", "1618", optimal_split(kBatch, kFfn, kGpus, kIci, kIci, 2).fsdp, "{:.0f}",
       "1581"},
      {"best FSDP ways of 4 Mi tokens", "1619",
       optimal_split(4 * 1'048'576.0, kFfn, kGpus, kIci, kIci, 2).fsdp},
      {"FSDP + TP on v5p, tokens a chip", "113", fsdp_and_tp_tokens_bound(kIci, kIci, kFfn, 2)},
      {"FSDP + TP on NVLink alone", "21", fsdp_and_tp_tokens_bound(kNvlink, kNvlink, kFfn, 2)},
      {"FSDP on 400G + TP on NVLink", "758", fsdp_and_tp_tokens_bound(kNic, kNvlink, kFfn)},
      {"GPUs of FSDP 2048 x TP 4", "8960", shards, "{:.0f}", "8192"},
      // 51.67: cut off, or of 70e9 parameters.
      {"weights a GPU at 6 bytes, MB", "51", kParameters * 6 / shards * 1e-6, "{:.0f}", "52"},
      {"gradients a GPU, MB", "17", kParameters * 2 / shards * 1e-6},
      {"moments a GPU, MB", "69", kParameters * 8 / shards * 1e-6},
      {"activations a GPU, GB", "1.3", activations * 1e-9, "{:.1f}"},
      {"sum a GPU, GB", "1.5", (kParameters * 16 / shards + activations) * 1e-9, "{:.1f}", "1.4"},
      {"cross-pod on v5p, tokens a pod", "73440", data_parallel_tokens_bound(459e12 / 6.25e9)},
      // Eight GPUs and eight NICs: the node's C / W is the GPU's.
      {"cross-node on H100, tokens a node", "19780", data_parallel_tokens_bound(kNic)},
      {"GPUs that hold the state", "117",
       static_cast<double>(least_gpus_for_state(kParameters, gigabytes(80))), "{:.0f}", "15"},
      {"years on 117 GPUs", "10.0", training_days(flops, 117, kRate) / 365.25, "{:.1f}", "4.3"},
      // 54 days is a window of the 405B's run.
      {"days of the 70B on 16,384", "54", training_days(flops, 16'384, kRate), "{:.0f}", "11"},
  };
  return kSteps;
}

TEST(ClosedForms, reproduce_the_worked_70b_budget_or_say_what_follows_instead) {
  for (const Printed& step : worked_example()) {
    const std::string ours = fmt::format(fmt::runtime(step.form), step.ours);
    const std::string expected = *step.follows == '\0' ? step.printed : step.follows;
    EXPECT_EQ(ours, expected) << step.step << ", printed " << step.printed;
    if (*step.follows != '\0') {
      EXPECT_NE(ours, step.printed) << step.step << " follows after all";
    }
  }
}

TEST(ClosedForms, the_batch_of_the_example_is_communication_bound_across_nodes) {
  EXPECT_LT(kBatch / kGpus, fsdp_and_tp_tokens_bound(kNic, kNvlink, kFfn));
  EXPECT_GT(kBatch / kGpus, fsdp_and_tp_tokens_bound(kIci, kIci, kFfn, 2));
  // 16M tokens on 2,000 nodes are below what data parallelism across nodes hides.
  EXPECT_LT(16e6 / 2'000, data_parallel_tokens_bound(kNic));
}

// At a criterion's edge its two sides take the same time: a layer of D hidden, two matrices.
TEST(ClosedForms, each_bound_is_where_transfers_take_as_long_as_products) {
  constexpr double d = 4'096, f = 14'336;
  for (const double compute : {312e12, 989e12}) {
    for (const double link : {25e9, 50e9, 450e9}) {
      const double alpha =
          flops_per_byte(FlopRate::from_per_second(compute),
                         Bandwidth::from_bytes_per_second(static_cast<int64_t>(link)));
      const double rank_tokens = data_parallel_tokens_bound(alpha);
      EXPECT_NEAR(8 * d * f / link, 8 * rank_tokens * d * f / compute, 1e-9) << link;

      const double ways = tensor_parallel_limit(f, alpha);
      EXPECT_NEAR(4 * d / link / (4 * d * f / ways / compute), 1, 1e-9) << link;
      EXPECT_NEAR(tensor_parallel_least_ffn(ways, alpha), f, 1e-6 * f);

      const double fast = alpha / 9, gpus = 1'024;
      const double tokens = gpus * fsdp_and_tp_tokens_bound(alpha, fast, f);
      const MeshSplit split = optimal_split(tokens, f, gpus, alpha, fast);
      EXPECT_NEAR(split.fsdp * split.tp, gpus, 1e-9 * gpus);
      const double products = 4 * tokens * d * f / gpus / compute;
      EXPECT_NEAR(4 * d * f / split.tp / link / products, 1, 1e-9);
      EXPECT_NEAR(4 * tokens / split.fsdp * d / (9 * link) / products, 1, 1e-9);
    }
  }
}

TEST(ClosedForms, the_bubble_is_that_of_the_schedules) {
  for (const char* name : {"gpipe", "1f1b", "interleaved-1f1b"}) {
    const ScheduleRow* row = find_schedule(name);
    ASSERT_NE(row, nullptr) << name;
    for (const int64_t stages : {2, 4, 16}) {
      for (const int64_t rounds : {1, 2, 4}) {
        const int64_t chunks = row->uses_virtual_stages ? 4 : 1;
        const ScheduleShape shape{
            .stages = stages, .micro_batches = rounds * stages, .virtual_stages = chunks};
        const double busy = row->bubble_bound(shape);
        EXPECT_NEAR(bubble_share(stages, rounds * stages, chunks), busy / (1 + busy), 1e-12)
            << name << " " << stages << " " << rounds;
      }
    }
  }
}

// Llama 3 405B: 430 TFLOP/s at 8K GPUs, 400 at 16K, 0.93 of it. PP 16, 32 and 16 micro-batches.
TEST(ClosedForms, only_seven_or_eight_virtual_stages_explain_the_llama_3_table) {
  EXPECT_NEAR(bubble_slowdown(16, 32, 16, 1), 0.758, 5e-4);
  EXPECT_NEAR(bubble_slowdown(16, 32, 16, 2), 0.840, 5e-4);
  EXPECT_NEAR(bubble_slowdown(16, 32, 16, 4), 0.905, 5e-4);
  EXPECT_NEAR(bubble_slowdown(16, 32, 16, 7), 0.941, 5e-4);
  EXPECT_NEAR(bubble_slowdown(16, 32, 16, 8), 0.948, 5e-4);
}

TEST(ClosedForms, gpus_days_and_rates_invert_each_other) {
  EXPECT_EQ(gpus_for_days(3e24, 90, 2'000e12 * 0.552), 350);  // 349.5
  EXPECT_EQ(gpus_for_days(3e24, 90, 989e12 * 0.552), 707);    // 706.7
  EXPECT_NEAR(training_days(3.79e25, 16'384, 400e12), 66.9, 0.05);
  EXPECT_NEAR(rate_for_days(3.8e25, 16'384, 54) / 989.4e12, 0.5024, 5e-5);
  for (const double gpus : {1.0, 350.0, 16'384.0}) {
    const double days = training_days(1e24, gpus, 4e14);
    EXPECT_EQ(gpus_for_days(1e24, days, 4e14), static_cast<int64_t>(gpus));
    EXPECT_NEAR(rate_for_days(1e24, gpus, days), 4e14, 1e3);
  }
}

}  // namespace
}  // namespace herdsim
