// Whether cuDNN takes the graphs of the harness, on a machine that has no GPU: plans are compiled
// for a device that is described, and loaded by a stand-in for the driver.
#include "calibrate/cuda/fused_attention.h"

#include <dlfcn.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>

#include "calibrate/harness/calibration.h"

namespace herdsim::cuda {
namespace {

class FusedAttentionOfNoDevice : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    ASSERT_NE(dlopen(HERDSIM_STAND_IN_DRIVER, RTLD_NOW | RTLD_GLOBAL), nullptr) << dlerror();
  }
};

// An H100 SXM5, as cuDNN itself writes a device down; or another GPU with the same numbers, which
// decide about tiles and not about graphs.
CudnnTarget described(int compute_capability) {
  return {
      .device_json = fmt::format(
          R"({{"deviceVer": {}, "driverVer": 13000, "cudaDeviceId": 0, "totalGlobalMem": 85899345920,
  "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64], "regsPerBlock": 65536,
  "multiProcessorCount": 132, "warpSize": 32, "maxSharedMemoryPerBlock": 49152,
  "maxSharedMemoryPerBlockOptin": 232448, "reservedSharedMemoryPerBlock": 1024,
  "maxRegistersPerSM": 65536, "maxCtasPerSM": 32, "maxThreadsPerBlock": 1024, "maxThreadsPerSM": 2048,
  "pciDeviceId": 0, "isTccDriver": 0, "supportCoopLaunch": 1, "smClockRateKHz": 1980000,
  "memClockRateKHz": 2619000, "l2CacheSize": 52428800, "deviceName": "NVIDIA H100 80GB HBM3"}})",
          compute_capability)};
}

AttentionShape shape_of(AttentionPass pass, double mask_fraction) {
  return {.batch = 2,
          .query_tokens = 1024,
          .kv_tokens = 1024,
          .heads = 16,
          .kv_heads = 4,
          .head_dim = 128,
          .mask_fraction = mask_fraction,
          .pass = pass};
}

// Each kind at its most tokens: a plan takes a second to compile.
TEST_F(FusedAttentionOfNoDevice, cudnn_builds_every_kind_of_the_harness_for_an_h100) {
  const DeviceFacts h100{.multiprocessors = 132};
  std::map<std::string, AttentionShape> kinds;
  for (const Probe& probe : default_probes(h100, 1, 1e13, gibibytes(1), true)) {
    const auto* a = std::get_if<AttentionShape>(&probe);
    if (a == nullptr) continue;
    kinds[fmt::format("{} {} {}", a->pass == AttentionPass::kForward ? "forward" : "backward",
                      a->mask_fraction < 1 ? "causal" : "full", a->head_dim)] = *a;
  }
  EXPECT_EQ(kinds.size(), 8u);
  for (const auto& [kind, shape] : kinds) {
    SCOPED_TRACE(fmt::format("{}, {} tokens", kind, shape.query_tokens));
    try {
      const FusedAttention attention(described(900), shape);
      fmt::print("{}, {} tokens: engine {}, workspace {} bytes\n", kind, shape.query_tokens,
                 attention.engine(), attention.workspace_bytes());
    } catch (const std::runtime_error& error) {
      ADD_FAILURE() << error.what();
    }
  }
}

TEST_F(FusedAttentionOfNoDevice, cudnn_builds_shared_heads_and_narrow_values_on_three_generations) {
  for (const int generation : {800, 900, 1000}) {
    for (const AttentionPass pass : {AttentionPass::kForward, AttentionPass::kBackward}) {
      EXPECT_NO_THROW(FusedAttention(described(generation), shape_of(pass, 0.5))) << generation;
    }
  }
  AttentionShape latent = shape_of(AttentionPass::kForward, 0.5);
  latent.head_dim = 192;
  latent.value_head_dim = 128;
  latent.kv_heads = latent.heads;
  EXPECT_NO_THROW(FusedAttention(described(900), latent));
  latent.pass = AttentionPass::kBackward;
  EXPECT_NO_THROW(FusedAttention(described(900), latent));
}

TEST_F(FusedAttentionOfNoDevice, tells_why_where_cudnn_has_no_engine) {
  AttentionShape shape = shape_of(AttentionPass::kForward, 0.5);
  shape.head_dim = 100;  // not a multiple of 8
  try {
    const FusedAttention attention(described(900), shape);
    ADD_FAILURE() << "cuDNN took a head of 100";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("cuDNN"), std::string::npos) << error.what();
  }
}

TEST_F(FusedAttentionOfNoDevice, knows_the_bytes_of_its_tensors) {
  const FusedAttention attention(described(900), shape_of(AttentionPass::kBackward, 1));
  ASSERT_EQ(attention.tensors(), FusedAttention::kBackwardTensors);
  constexpr size_t kQuery = size_t{2} * 16 * 1024 * 128 * 2, kKey = kQuery / 4;
  const size_t wanted[] = {kQuery, kKey,   kKey, kQuery, size_t{2} * 16 * 1024 * 4,
                           kQuery, kQuery, kKey, kKey};
  for (size_t i = 0; i < attention.tensors(); ++i) EXPECT_EQ(attention.bytes_of(i), wanted[i]) << i;
  // At least the sums of dQ and D, in fp32.
  EXPECT_GE(attention.workspace_bytes(), 2 * kQuery + size_t{2} * 16 * 1024 * 4);
}

}  // namespace
}  // namespace herdsim::cuda
