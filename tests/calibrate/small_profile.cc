#include "tests/calibrate/small_profile.h"

#include "sim/base/check.h"

namespace herdsim {

std::string small_profile_text() {
  return R"(name: "small"
device {
  model: "Small"
  hbm_bytes: 80000000000
  hbm_gigabytes_per_second: 3000
  sms: 100
  board_watts: 700
  bf16_teraflops: 1000
  source { evidence: VENDOR text: "data sheet" }
}
launch {
  floor_microseconds: 2.5
  source { evidence: MEASURED text: "here" }
}
gemm {
  dtype: BF16
  m: [32, 4096]
  n: [64, 8192]
  k: [128, 2048]
  nanoseconds: [300, 400, 500, 3000,
                900, 2000, 20000, 200000]
  row_step: 32
  row_step_until: 1024
  sustained_at_nanoseconds: [100000, 1000000]
  sustained_factor: [1, 1.1]
  wgrad_rate: 0.95
  source { evidence: PUBLISHED text: "table" }
}
attention {
  kernel: "fa3"
  curve {
    pass: FORWARD
    causal: true
    head_dim: 128
    kv_tokens: [1024, 8192]
    teraflops: [400, 600]
    source { evidence: PUBLISHED text: "figure" }
  }
  curve {
    pass: BACKWARD
    causal: true
    head_dim: 128
    kv_tokens: [1024, 4096, 8192]
    teraflops: [180, 400, 500]
    measured_from: 4096
    source { evidence: PUBLISHED text: "figure" }
  }
  fill_at_tiles_per_sm: [0.5, 1]
  fill_share: [0.6, 1]
  fill_source { evidence: ASSUMED text: "guess" }
  floor_microseconds: 5
}
stream {
  class: FUSED
  bytes: [1000000, 1000000000]
  gigabytes_per_second: [500, 2800]
  source { evidence: PUBLISHED text: "benchmark" }
}
stream {
  class: FRAMEWORK
  bytes: [1000000, 1000000000]
  gigabytes_per_second: [400, 1800]
  source { evidence: PUBLISHED text: "benchmark" }
}
stream {
  class: OPTIMIZER
  bytes: [1000000, 1000000000]
  gigabytes_per_second: [400, 2500]
  source { evidence: PUBLISHED text: "benchmark" }
}
host_to_device {
  bytes: [1000000]
  gigabytes_per_second: [50]
  source { evidence: ASSUMED text: "bus" }
}
device_to_host {
  bytes: [1000000]
  gigabytes_per_second: [50]
  source { evidence: ASSUMED text: "bus" }
}
collective {
  kind: ALL_REDUCE
  ranks: 8
  bytes: [1048576, 67108864]
  microseconds: [25, 325]
  source { evidence: PUBLISHED text: "nccl-tests" }
}
peer_copy {
  bytes: [1000, 1000000]
  gigabytes_per_second: [1, 390]
  source { evidence: MEASURED text: "copies by NVLink" }
}
)";
}

std::string with(std::string text, std::string_view from, std::string_view to) {
  const size_t at = text.find(from);
  HERDSIM_CHECK(at != std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

}  // namespace herdsim
