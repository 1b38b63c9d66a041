// Tables of measured kernels and collectives, read from CSV files and nccl-tests logs. The fit
// learns from them and `herdsim profile check` compares a profile with them.
//
// Which kind a CSV holds is told by its columns; the order does not matter, others are ignored, and
// a time is `latency_ms`, `time_us` or `time_s`:
//
//   products      dtype,m,n,k[,pass]              pass: forward, dgrad, wgrad
//   attention     kernel,batch,seqlen,q_heads,kv_heads,head_dim[,causal][,pass]
//                                                 pass: forward, backward
//   streams       class,bytes                     class: fused, framework, optimizer
//   copies        copy,bytes                      copy: to_device, to_host, peer, peer_both_ways
//   collectives   op,gpus,bytes[,nodes][,dtype]   bytes: the "size" of nccl-tests
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.h"
#include "sim/models/kernel.h"

namespace herdsim {

struct GemmMeasurement {
  GemmShape shape;
  std::string dtype;  // as printed: "bfloat16", "fp8", "fp8_block"
  double seconds = 0;
};

struct AttentionMeasurement {
  AttentionShape shape;
  std::string kernel;  // as printed: "fa3", "vllm_flash_attn_fa3"
  double seconds = 0;
};

struct StreamMeasurement {
  MemoryTraffic traffic;
  double seconds = 0;
};

struct CopyMeasurement {
  enum class Kind : uint8_t { kToDevice, kToHost, kPeer, kPeerBothWays };
  Kind kind = Kind::kToDevice;
  Bytes size;  // each way
  double seconds = 0;
};

struct CollectiveMeasurement {
  std::string kind;  // as CollectiveCurve::kind
  int64_t ranks = 0;
  int64_t nodes = 1;
  Bytes size;
  double seconds = 0;
  std::string dtype;  // as printed; may be empty
};

struct Measurements {
  std::vector<GemmMeasurement> gemm;
  std::vector<AttentionMeasurement> attention;
  std::vector<StreamMeasurement> stream;
  std::vector<CopyMeasurement> copy;
  std::vector<CollectiveMeasurement> collective;
  size_t size() const {
    return gemm.size() + attention.size() + stream.size() + copy.size() + collective.size();
  }
};

// `file` is only named in faults. Throws: SpecError with every fault.
Measurements read_measurements_csv(std::string_view text, const std::string& file);

// Throws: SpecError
std::string read_text_file(const std::string& path);

}  // namespace herdsim
