#include "calibrate/cuda/gpu_facts.h"

#include <fmt/format.h>

#include <array>
#include <string_view>

#include "calibrate/cuda/cuda_check.h"
#include "sim/base/error.h"

namespace herdsim::cuda {
namespace {

// NVIDIA's data sheets (vendor): dense bf16, NVLink one way, and the link to a Grace processor.
struct Board {
  std::string_view name;
  double flops = 0;
  double nvlink = 0;     // bytes a second; through bridges on PCIe boards
  double host_link = 0;  // 0: PCIe
};
// The first whose name the device's holds.
constexpr std::array<Board, 9> kBoards = {{{"H100 PCIe", 756e12, 300e9},
                                           {"H100 NVL", 835e12, 300e9},
                                           {"H100", 989.4e12, 450e9},
                                           {"GH200", 989.4e12, 450e9, 450e9},
                                           {"H200 NVL", 835e12, 450e9},
                                           {"H200", 989.4e12, 450e9},
                                           {"GB200", 2500e12, 900e9, 450e9},
                                           {"B200", 2250e12, 900e9},
                                           {"A100", 312e12, 300e9}}};

Board board_of(std::string_view name) {
  for (const Board& board : kBoards) {
    if (name.find(board.name) != std::string_view::npos) return board;
  }
  return {};
}

int attribute(cudaDeviceAttr which, int device) {
  int value = 0;
  return cudaDeviceGetAttribute(&value, which, device) == cudaSuccess ? value : 0;
}

bool sees(int device, int peer) {
  int can = 0;
  check(cudaDeviceCanAccessPeer(&can, device, peer));
  return can != 0;
}

// As NVML says; else as CUDA lets conclude, since only NVLink has atomics.
bool has_nvlink(const GpuMonitor& monitor, int device, int peer) {
  if (const auto told = monitor.has_nvlink_to(GpuMonitor(pci_bus_id(peer)))) return *told;
  int atomics = 0;
  check(cudaDeviceGetP2PAttribute(&atomics, cudaDevP2PAttrNativeAtomicSupported, device, peer));
  return atomics != 0;
}

}  // namespace

std::string pci_bus_id(int device) {
  std::array<char, 32> bus{};
  check(cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), device));
  return bus.data();
}

DeviceFacts gpu_facts(const GpuMonitor& monitor, int device) {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, device));
  if (properties.major < 8) {
    throw SpecError({{.field = "--backend",
                      .problem = fmt::format("{} has compute capability {}.{}", properties.name,
                                             properties.major, properties.minor),
                      .allowed = "8.0 and later, for bf16"}});
  }
  int runtime = 0, nccl = 0;
  check(cudaRuntimeGetVersion(&runtime));
  check(ncclGetVersion(&nccl));
  const Board board = board_of(properties.name);
  return {.name = properties.name,
          .software = fmt::format("driver {}, CUDA {}.{}, cuBLASLt {}, cuDNN {}, NCCL {}",
                                  monitor.driver(), runtime / 1000, runtime % 1000 / 10,
                                  cublasLtGetVersion(), cudnnGetVersion(), nccl),
          .memory = Bytes(static_cast<int64_t>(properties.totalGlobalMem)),
          .multiprocessors = properties.multiProcessorCount,
          .watts = monitor.power_limit(),
          // Two transfers a clock.
          .memory_rate = 2.0 * attribute(cudaDevAttrMemoryClockRate, device) * 1e3 *
                         attribute(cudaDevAttrGlobalMemoryBusWidth, device) / 8,
          .peak_flops = board.flops,
          .host_rate = board.host_link > 0 ? board.host_link : monitor.pcie_rate(),
          .has_fp8 = properties.major * 10 + properties.minor >= 89,
          .attention_kernels = {"cudnn9"}};
}

void add_peer_link(const GpuMonitor& monitor, int device, int peer, DeviceFacts& facts) {
  if (!sees(device, peer) || !sees(peer, device)) {
    facts.peer_link = "the host's memory, as peer access is refused";
  } else if (has_nvlink(monitor, device, peer)) {
    facts.peer_link = "NVLink";
    facts.peer_rate = board_of(facts.name).nvlink;
  } else {
    facts.peer_link = "PCIe";
    facts.peer_rate = monitor.pcie_rate();
  }
}

}  // namespace herdsim::cuda
