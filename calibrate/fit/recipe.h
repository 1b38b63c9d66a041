// What goes into a profile of the catalogue: the data sheet of a device and the public tables that
// measured it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "calibrate/nccl_tests/nccl_tests_log.h"
#include "calibrate/profile/measurements.h"
#include "sim/models/gemm_tiles.h"

namespace herdsim {

// Source of most tables, as it is named in profiles.
constexpr std::string_view kAiconfigurator = "ai-dynamo/aiconfigurator @095f58a (Apache-2.0)";

// What the data sheet says of a device, and which files hold its measurements.
struct Recipe {
  std::string name;
  std::string device;
  std::string data_sheet;
  int64_t hbm_mebibytes = 0;
  double hbm_gigabytes_per_second = 0;
  int64_t sms = 0;
  double board_watts = 0;
  double training_clock = 1;           // of the tables' clock; 1: not written
  std::string_view training_said;  // of a part without tables: why that clock; empty: as the H100's
  double bf16 = 0, fp8 = 0, fp32 = 0;  // dense TFLOP/s

  // Without tables of its own the H100's are scaled: what arithmetic bounds by the peaks, what
  // memory bounds by `memory_time`, or where that is 0 by the memory rates.
  std::string gemm_sustained, gemm_burst, gemm_fp8;  // empty: none
  GemmTiles gemm_tiles;
  double memory_time = 0;
  std::vector<std::string> attention_causal;
  std::string attention_full;
  std::string attention_kernel;
  std::string nccl;
  std::string liger_gpu;  // as its rows name the device
};

const std::vector<Recipe>& recipes();

// A folder of public tables. Throws: SpecError from every function where a file cannot be read.
class PublicTables {
 public:
  explicit PublicTables(std::string folder) : folder_(std::move(folder)) {}
  std::string text(const std::string& file) const { return read_text_file(folder_ + "/" + file); }
  // aiconfigurator/<name>.csv
  Measurements aiconfigurator(const std::string& name) const;
  // nccl_logs/<name>.log
  std::vector<CollectiveMeasurement> nccl_log(const std::string& name,
                                              const NcclTestsHints& job) const;
  // Forward kernels of Liger-Kernel's benchmark with the bytes they move, fused ones and the
  // framework's beside them.
  std::vector<StreamMeasurement> liger(std::string_view gpu) const;
  const std::string& folder() const { return folder_; }

 private:
  std::string folder_;
};

}  // namespace herdsim
