#include "calibrate/fit/recipe.h"

#include <cmath>
#include <cstdlib>
#include <optional>

#include "calibrate/nccl_tests/log_measurements.h"
#include "calibrate/profile/csv_table.h"

namespace herdsim {
namespace {

// The number behind "key": in a flat JSON object.
std::optional<double> config_number(const std::string& json, std::string_view key) {
  const size_t at = json.find("\"" + std::string(key) + "\":");
  if (at == std::string::npos) return std::nullopt;
  return std::strtod(json.c_str() + at + key.size() + 3, nullptr);
}

// A kernel of Liger's benchmark with the bytes it moves an element: elements are the swept size
// times those of the configuration.
struct LigerKernel {
  std::string_view name, provider;
  StreamClass stream;
  double bytes;
};

constexpr LigerKernel kLigerKernels[] = {
    {"megatron_rms_norm", "liger", StreamClass::kFused, 4},      // bf16 in, bf16 out
    {"rms_norm", "liger", StreamClass::kFused, 4},               //
    {"layer_norm", "liger", StreamClass::kFused, 8},             // fp32
    {"megatron_swiglu", "liger", StreamClass::kFused, 6},        // two bf16 in, one out
    {"megatron_rms_norm", "torch", StreamClass::kFramework, 4},  //
    {"layer_norm", "huggingface", StreamClass::kFramework, 8},   //
    {"megatron_swiglu", "megatron", StreamClass::kFramework, 6},
};

// Of cuBLAS's sm80 kernels. Chosen together with a coarse surface to make the mean of the absolute
// errors of the table's logarithms least (Nelder and Mead 1965), then rounded.
const Provenance kA100Tiles = {
    Evidence::kPublished,
    "fitted to the table of the products: tiles of cuBLAS's and CUTLASS's sm80 kernels, waves of "
    "them on 108 SMs"};

}  // namespace

// At the H100's 0.95 the published steps are 14 % too short.
constexpr std::string_view kBlackwellClock =
    "0.825 of an H100's 0.95, set on MLPerf's seven runs of Llama 3.1 405B on 256 to 2,496 GB200, "
    "whose rates here are an H100's by the data sheets' peaks";
constexpr std::string_view kSharedClock =
    "a GB200's; its power is less by a sixth and its peak by a tenth";

const std::vector<Recipe>& recipes() {
  static const std::vector<Recipe> table = {
      {.name = "h100-sxm5-80gb",
       .device = "NVIDIA H100 80GB HBM3 (SXM5)",
       .data_sheet = "NVIDIA H100 data sheet, dense rates; memory as the driver reports it",
       .hbm_mebibytes = 81559,
       .hbm_gigabytes_per_second = 3350,
       .sms = 132,
       .board_watts = 700,
       .training_clock = 0.95,
       .bf16 = 989.4,
       .fp8 = 1978.9,
       .fp32 = 66.9,
       .gemm_sustained = "gemm_h100_sglang0.5.14_bf16",
       .gemm_burst = "gemm_h100_trtllm1.3.0rc20_bf16",
       .gemm_fp8 = "gemm_h100_trtllm1.3.0rc20_fp8",
       .attention_causal = {"attn_fwd_causal_h100_sglang0.5.14", "attn_fwd_causal_h100_vllm0.24.0"},
       .attention_full = "attn_fwd_full_h100_vllm0.24.0",
       .attention_kernel = "fa3",
       .nccl = "nccl_h100_2.29.2",
       .liger_gpu = "NVIDIA H100 80GB HBM3"},
      {.name = "h200-sxm-141gb",
       .device = "NVIDIA H200 (SXM)",
       .data_sheet = "NVIDIA H200 data sheet, dense rates; memory as the driver reports it",
       .hbm_mebibytes = 143771,
       .hbm_gigabytes_per_second = 4800,
       .sms = 132,
       .board_watts = 700,
       .training_clock = 0.95,
       .bf16 = 989.4,
       .fp8 = 1978.9,
       .fp32 = 66.9,
       .memory_time = 0.89,
       .attention_causal = {"attn_fwd_causal_h200_vllm0.24.0"},
       .attention_kernel = "fa3",
       .nccl = "nccl_h200_2.29.2"},
      {.name = "a100-sxm4-80gb",
       .device = "NVIDIA A100-SXM4-80GB",
       .data_sheet = "NVIDIA A100 data sheet, dense rates; memory as the driver reports it",
       .hbm_mebibytes = 81920,
       .hbm_gigabytes_per_second = 2039,
       .sms = 108,
       .board_watts = 400,
       .bf16 = 312,
       .fp32 = 19.5,
       .gemm_sustained = "gemm_a100_sglang0.5.10_bf16",
       .gemm_tiles = {.tiles = {{256, 128, 6950, 23.06},
                                {128, 256, 6950, 23.38},
                                {128, 128, 4630, 15.38},
                                {256, 64, 4630, 16.05},
                                {64, 256, 4630, 17.6},
                                {128, 64, 3470, 9.246},
                                {64, 128, 3470, 9.743},
                                {64, 64, 2880, 7.733},
                                {64, 32, 2590, 6.242},
                                {32, 64, 2590, 5.431}},
                      .slices = {1, 2, 3, 4, 6, 8, 12, 16},
                      .slicing_nanoseconds = 1000,
                      .partial_sum_bytes_per_second = 2610e9,
                      .memory_bytes_per_second = 1450e9,
                      .scale_nanoseconds = 10000,
                      .exponent = 0.9,
                      .provenance = kA100Tiles},
       .attention_causal = {"attn_fwd_causal_a100_vllm0.14.0"},
       .attention_kernel = "fa2",
       .nccl = "nccl_a100_2.27.3",
       .liger_gpu = "NVIDIA A100-SXM4-80GB"},
      {.name = "h100-pcie-80gb",
       .device = "NVIDIA H100 PCIe",
       .data_sheet = "NVIDIA H100 PCIe product brief, dense rates",
       .hbm_mebibytes = 81559,
       .hbm_gigabytes_per_second = 2039,
       .sms = 114,
       .board_watts = 350,
       .training_clock = 0.85,
       .bf16 = 756.5,
       .fp8 = 1513,
       .fp32 = 51.2},
      {.name = "b200-sxm-180gb",
       .device = "NVIDIA B200 (SXM)",
       .data_sheet = "NVIDIA DGX B200 data sheet, an eighth of it, dense rates",
       .hbm_mebibytes = 183359,
       .hbm_gigabytes_per_second = 8000,
       .sms = 148,
       .board_watts = 1000,
       .training_clock = 0.784,
       .training_said = kSharedClock,
       .bf16 = 2250,
       .fp8 = 4500,
       .fp32 = 75},
      {.name = "gb200-186gb",
       .device = "NVIDIA GB200 (one of two GPUs)",
       .data_sheet = "NVIDIA GB200 NVL72 data sheet, a 72nd of it, dense rates",
       .hbm_mebibytes = 189471,
       .hbm_gigabytes_per_second = 8000,
       .sms = 148,
       .board_watts = 1200,
       .training_clock = 0.784,
       .training_said = kBlackwellClock,
       .bf16 = 2500,
       .fp8 = 5000,
       .fp32 = 80}};
  return table;
}

Measurements PublicTables::aiconfigurator(const std::string& name) const {
  const std::string file = "aiconfigurator/" + name + ".csv";
  return read_measurements_csv(text(file), file);
}

std::vector<CollectiveMeasurement> PublicTables::nccl_log(const std::string& name,
                                                          const NcclTestsHints& job) const {
  const std::string file = "nccl_logs/" + name + ".log";
  const NcclTestsLog log = read_nccl_tests(file, text(file), job);
  std::vector<CollectiveMeasurement> rows;
  for (const NcclTest& test : log.tests) {
    const std::vector<CollectiveMeasurement> of_test = measurements_of(test);
    rows.insert(rows.end(), of_test.begin(), of_test.end());
  }
  if (rows.empty()) throw SpecError({{.file = file, .problem = "has no table of nccl-tests"}});
  return rows;
}

std::vector<StreamMeasurement> PublicTables::liger(std::string_view gpu) const {
  const std::string file = "liger/liger_speed_h100_a100.csv";
  const CsvTable table(text(file), file);
  Faults faults;
  const auto cell = [&](size_t row, std::string_view column) {
    return table.cell(row, *table.column(column));
  };
  std::vector<StreamMeasurement> rows;
  for (size_t i = 0; i < table.rows(); ++i) {
    if (cell(i, "gpu_name") != gpu || cell(i, "kernel_operation_mode") != "forward") continue;
    for (const LigerKernel& kernel : kLigerKernels) {
      if (cell(i, "kernel_name") != kernel.name || cell(i, "kernel_provider") != kernel.provider)
        continue;
      const std::string config = cell(i, "extra_benchmark_config_str");
      double elements = table.positive_number(i, *table.column("x_value"), faults);
      for (const std::string_view key : {"M", "S", "B"})
        elements *= config_number(config, key).value_or(1.0);
      rows.push_back({{Bytes(std::llround(elements * kernel.bytes)), kernel.stream},
                      table.positive_number(i, *table.column("y_value_50"), faults) * 1e-3});
    }
  }
  faults.throw_if_any();
  return rows;
}

}  // namespace herdsim
