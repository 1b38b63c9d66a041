// What a GPU's name in a table of runs stands for.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "sim/models/device_profile.h"

namespace herdsim {

struct GpuRow {
  std::string_view name;
  std::string_view profile;
  double nvlink;         // GB/s, one direction
  double nic;            // Gb/s a GPU
  double hbm = 0;        // GB/s, where not the profile's
  double gigabytes = 0;  // of memory, where not the profile's
  // GPUs that NVLink joins beyond a node: racks of NVL72.
  int64_t nvlink_domain = 0;
  // That a training step sustains over the profile's. Nothing calibrates a GB300, which has a sixth
  // more power than the GB200 of its profile: it is taken to sustain what an H100 does.
  double clock = 1;
  int64_t without_switch = 0;  // GPUs of a node whose NVLinks join each pair; 0: none does
};

// "A100-80GB" is an A100. Null where the name is of none.
const GpuRow* find_gpu(std::string_view name);

// The whole table.
std::span<const GpuRow> table_gpus();

// Streams of a part whose memory is `factor` times as fast. Fused kernels and the optimizer's keep the memory busy. Kernels
// of the framework, at half the memory's rate, wait for their SMs, which are the same: eager Llama 3 8B took 2.0 TB/s on an
// H100 with memory of 2.4 TB/s (torchtitan, compiled beside not), and takes 1.86 TB/s on one with 3.35 TB/s. Faster memory
// is taken to carry them along, for nothing says that it does not.
void set_memory_rate(DeviceProfile& p, double factor);

}  // namespace herdsim
