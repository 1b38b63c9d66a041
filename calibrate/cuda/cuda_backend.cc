#include "calibrate/cuda/cuda_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <optional>

#include "calibrate/cuda/cuda_kernels.h"
#include "calibrate/cuda/gpu_monitor.h"
#include "calibrate/cuda/kernel_references.h"
#include "calibrate/cuda/prepared_probe.h"
#include "sim/base/error.h"

namespace herdsim {
namespace {

using cuda::check;
using cuda::DeviceMemory;
using cuda::LocalGpu;

constexpr size_t kWorkspace = size_t{64} << 20;

// Dense bf16 peaks of the boards: NVIDIA's data sheets (vendor).
struct BoardPeak {
  std::string_view name;
  double flops;
};
constexpr std::array<BoardPeak, 7> kBoards = {{{"H100 PCIe", 756e12},
                                               {"H100 NVL", 835e12},
                                               {"H100", 989.4e12},
                                               {"H200", 989.4e12},
                                               {"GB200", 2500e12},
                                               {"B200", 2250e12},
                                               {"A100", 312e12}}};

// One process has all GPUs that it sees; each of several has one, by its place on the node.
std::vector<LocalGpu> gpus_of(const Peers& peers, int visible) {
  std::vector<LocalGpu> gpus;
  if (peers.ranks() > 1) return {{.device = peers.rank_on_node() % visible, .rank = peers.rank()}};
  for (int device = 0; device < visible; ++device)
    gpus.push_back({.device = device, .rank = device});
  return gpus;
}

// What the probe's product is, its own or one beside something; null where it has none.
const GemmShape* product_of(const Probe& probe) {
  const auto* sharing = std::get_if<SharingProbe>(&probe);
  return sharing != nullptr ? &sharing->product : std::get_if<GemmShape>(&probe);
}

struct Prepare {
  const cuda::ProbeRoom& room;
  using Made = std::unique_ptr<cuda::PreparedProbe>;
  Made operator()(const GemmShape& g) const { return cuda::prepare_product(room, g); }
  Made operator()(const AttentionShape& a) const { return cuda::prepare_attention(room, a); }
  Made operator()(const MemoryTraffic& s) const { return cuda::prepare_stream(room, s); }
  Made operator()(const CollectiveProbe& c) const { return cuda::prepare_collective(room, c); }
  Made operator()(const CopyProbe& c) const { return cuda::prepare_copy(room, c); }
  Made operator()(const SharingProbe& s) const { return cuda::prepare_sharing(room, s); }
  Made operator()(const LaunchProbe& /*launch*/) const { return cuda::prepare_launch(room); }
  Made operator()(const PeakProbe& /*refused*/) const { return cuda::prepare_launch(room); }
};

class CudaBackend : public Backend {
 public:
  CudaBackend(Peers& peers, int visible) : peers_(peers), gpus_(gpus_of(peers, visible)) {
    check(cudaSetDevice(gpus_.front().device));
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, gpus_.front().device));
    std::array<char, 32> bus{};
    check(cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), gpus_.front().device));
    monitor_.emplace(bus.data());
    read_facts(properties);
    for (auto gpu = gpus_.rbegin(); gpu != gpus_.rend(); ++gpu) {
      int lowest = 0, highest = 0;
      check(cudaSetDevice(gpu->device));
      check(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
      check(cudaStreamCreate(&gpu->stream));
      check(cudaStreamCreateWithPriority(&gpu->transfers, cudaStreamNonBlocking, highest));
      check(cudaEventCreate(&gpu->begin));
      check(cudaEventCreate(&gpu->end));
    }
    groups_.emplace(peers, gpus_, ranks());
    room_ = {.stream = gpus_.front().stream, .workspace_bytes = kWorkspace, .groups = &*groups_};
    check(cublasLtCreate(&room_.blas));
    check(cudnnCreate(&room_.dnn));
    check(cudnnSetStream(room_.dnn, room_.stream));
    workspace_ = DeviceMemory(kWorkspace);
    room_.workspace = workspace_.get();
    const float one = 1;
    one_ = DeviceMemory(sizeof(float));
    check(cudaMemcpy(one_.get(), &one, sizeof(one), cudaMemcpyHostToDevice));
    room_.one = static_cast<const float*>(one_.get());
    cuda::check_own_kernels(6, 512);
    cuda::check_own_kernels(3, 8192);
  }

  ~CudaBackend() override {
    prepared_.clear();
    groups_.reset();
    cudnnDestroy(room_.dnn);
    cublasLtDestroy(room_.blas);
    for (const LocalGpu& gpu : gpus_) {
      cudaEventDestroy(gpu.begin);
      cudaEventDestroy(gpu.end);
      cudaStreamDestroy(gpu.stream);
      cudaStreamDestroy(gpu.transfers);
    }
  }

  const DeviceFacts& facts() const override { return facts_; }
  int64_t ranks() const override {
    return peers_.ranks() > 1 ? peers_.ranks() : static_cast<int64_t>(gpus_.size());
  }
  int64_t nodes_of(int64_t ranks) const override {
    return peers_.ranks() > 1 ? peers_.nodes_of(ranks) : 1;
  }
  bool leads() const override { return peers_.rank() == 0; }
  bool alone() const override { return peers_.ranks() == 1; }
  double agree(double value) override { return peers_.agree(value); }
  bool all(bool value) override { return peers_.all(value); }

  std::string why_not(const Probe& probe) const override {
    if (std::holds_alternative<PeakProbe>(probe))
      return "the peak is the data sheet's, or the fastest product's";
    const auto* sharing = std::get_if<SharingProbe>(&probe);
    const bool of_several = std::holds_alternative<CollectiveProbe>(probe) ||
                            (sharing != nullptr && !sharing->collective.empty());
    if (of_several && ranks() == 1) return "one GPU";
    if (const auto* a = std::get_if<AttentionShape>(&probe)) {
      if (a->mask_fraction != 1 && a->mask_fraction != 0.5) return "masks are full or causal";
      if (a->mask_fraction < 1 && a->query_tokens != a->kv_tokens)
        return "a causal mask is of as many queries as keys";
    }
    if (const GemmShape* g = product_of(probe)) {
      if (g->dtype == DataType::kFp8 && !facts_.has_fp8) return "this GPU has no fp8";
      if (g->dtype == DataType::kFp8 && g->pass != GemmPass::kForward)
        return "fp8 products have the forward layout only";
      if (g->dtype != DataType::kBf16 && g->dtype != DataType::kFp8)
        return "products are bf16 or fp8";
      const int64_t multiple = g->dtype == DataType::kFp8 ? 16 : 8;
      if (g->n % multiple != 0 || g->k % multiple != 0 || g->m % 8 != 0)
        return fmt::format("sizes are multiples of {}", multiple);
    }
    return "";
  }

  // Groups and memory first, on every rank, as a rank that has none would leave the others in a
  // collective.
  int prepare(const Probe& probe) override {
    join(probe);
    std::unique_ptr<cuda::PreparedProbe> made;
    std::string fault = "failed on another rank";
    try {
      made = std::visit(Prepare{room_}, probe);
    } catch (const std::runtime_error& error) {
      fault = error.what();
    }
    if (!peers_.all(made != nullptr)) throw std::runtime_error(fault);
    made->run();
    finish();
    made->check_result();
    prepared_.push_back(std::move(made));
    return static_cast<int>(prepared_.size()) - 1;
  }

  // As nccl-tests does: after a barrier, all runs back to back, the slowest rank's time.
  Sample time(int id, int64_t runs) override {
    constexpr int kTries = 4;
    for (int attempt = 0; attempt < kTries; ++attempt) {
      const auto [sample, covered] = series(*prepared_[static_cast<size_t>(id)], runs);
      if (peers_.all(covered)) return sample;
    }
    throw std::runtime_error("what goes on beside a product ends before it");
  }

  void run(int id) override { prepared_[static_cast<size_t>(id)]->run(); }

  void finish() override {
    for (auto gpu = gpus_.rbegin(); gpu != gpus_.rend(); ++gpu) {
      check(cudaSetDevice(gpu->device));
      check(cudaStreamSynchronize(gpu->stream));
    }
  }
  void release(int id) override { prepared_[static_cast<size_t>(id)].reset(); }

  void recover() override {
    for (auto gpu = gpus_.rbegin(); gpu != gpus_.rend(); ++gpu) {
      check(cudaSetDevice(gpu->device));
      cudaGetLastError();  // of what failed
      if (const cudaError_t status = cudaDeviceSynchronize(); status != cudaSuccess)
        throw std::runtime_error(std::string("the GPU can do nothing any more: ") +
                                 cudaGetErrorString(status));
    }
  }

 private:
  void join(const Probe& probe) {
    if (const auto* c = std::get_if<CollectiveProbe>(&probe))
      groups_->of(c->ranks > 0 ? c->ranks : ranks());
    const auto* s = std::get_if<SharingProbe>(&probe);
    if (s != nullptr && !s->collective.empty()) groups_->of(ranks(), static_cast<int>(s->sms));
  }

  void read_facts(const cudaDeviceProp& properties) {
    const int device = gpus_.front().device;
    int driver = 0, runtime = 0, nccl = 0, clock_khz = 0, bus_bits = 0;
    check(cudaDriverGetVersion(&driver));
    check(cudaRuntimeGetVersion(&runtime));
    check(ncclGetVersion(&nccl));
    cudaDeviceGetAttribute(&clock_khz, cudaDevAttrMemoryClockRate, device);
    cudaDeviceGetAttribute(&bus_bits, cudaDevAttrGlobalMemoryBusWidth, device);
    facts_ = {.name = properties.name,
              .software = fmt::format("driver {}, CUDA {}.{}, cuBLASLt {}, cuDNN {}, NCCL {}",
                                      monitor_->driver(), runtime / 1000, runtime % 1000 / 10,
                                      cublasLtGetVersion(), cudnnGetVersion(), nccl),
              .memory = Bytes(static_cast<int64_t>(properties.totalGlobalMem)),
              .multiprocessors = properties.multiProcessorCount,
              .watts = monitor_->power_limit(),
              // Two transfers a clock.
              .memory_rate = 2.0 * clock_khz * 1e3 * bus_bits / 8,
              .has_fp8 = properties.major * 10 + properties.minor >= 89,
              .attention_kernels = {"cudnn9"}};
    for (const BoardPeak& board : kBoards) {
      if (facts_.name.find(board.name) == std::string::npos) continue;
      facts_.peak_flops = board.flops;
      break;
    }
  }

  // Of one run, and whether what goes on beside it outlasted it.
  std::pair<Sample, bool> series(cuda::PreparedProbe& probe, int64_t runs) {
    finish();
    peers_.barrier();
    probe.begin(runs);
    for (const LocalGpu& gpu : gpus_) check(cudaEventRecord(gpu.begin, gpu.stream));
    for (int64_t i = 0; i < runs; ++i) probe.run();
    check(cudaGetLastError());
    for (const LocalGpu& gpu : gpus_) check(cudaEventRecord(gpu.end, gpu.stream));
    // While it runs: afterwards the clock is an idle one's.
    const double clock = monitor_->clock_mhz(), watts = monitor_->power();
    finish();
    const bool covered = probe.end();
    double slowest = 0;
    for (const LocalGpu& gpu : gpus_) {
      float milliseconds = 0;
      check(cudaEventElapsedTime(&milliseconds, gpu.begin, gpu.end));
      slowest = std::max(slowest, milliseconds * 1e-3);
    }
    const auto kernels = static_cast<double>(runs * probe.kernels_a_run());
    return {{.seconds = peers_.most(slowest / kernels), .clock_mhz = clock, .watts = watts},
            covered};
  }

  Peers& peers_;
  std::vector<LocalGpu> gpus_;  // of this process
  DeviceFacts facts_;
  std::optional<cuda::GpuMonitor> monitor_;
  std::optional<cuda::CollectiveGroups> groups_;
  cuda::ProbeRoom room_;
  DeviceMemory workspace_, one_;
  std::vector<std::unique_ptr<cuda::PreparedProbe>> prepared_;
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(Peers& peers) {
  int gpus = 0;
  const cudaError_t status = cudaGetDeviceCount(&gpus);
  if (status != cudaSuccess || gpus == 0) {
    throw SpecError(
        {{.field = "--backend",
          .problem = std::string("no CUDA device: ") +
                     (status != cudaSuccess ? cudaGetErrorString(status) : "none is visible"),
          .allowed = "host, which measures this machine's processor"}});
  }
  return std::make_unique<CudaBackend>(peers, gpus);
}

}  // namespace herdsim
