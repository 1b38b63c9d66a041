#include "calibrate/cuda/cuda_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "calibrate/cuda/cuda_kernels.h"
#include "calibrate/cuda/gpu_facts.h"
#include "calibrate/cuda/gpu_monitor.h"
#include "calibrate/cuda/kernel_references.h"
#include "calibrate/cuda/prepared_probe.h"
#include "calibrate/cuda/stream_hold.h"
#include "sim/base/error.h"

namespace herdsim {
namespace {

using cuda::check;
using cuda::DeviceMemory;
using cuda::LocalGpu;

constexpr size_t kWorkspace = size_t{64} << 20;

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
  Made operator()(const PeerCopyProbe& c) const { return cuda::prepare_peer_copy(room, c); }
  Made operator()(const SharingProbe& s) const { return cuda::prepare_sharing(room, s); }
  Made operator()(const LaunchProbe& /*launch*/) const { return cuda::prepare_launch(room); }
  Made operator()(const PeakProbe& /*refused*/) const { return cuda::prepare_launch(room); }
};

class CudaBackend : public Backend {
 public:
  CudaBackend(Peers& peers, int visible) : peers_(peers), gpus_(gpus_of(peers, visible)) {
    const int device = gpus_.front().device;
    check(cudaSetDevice(device));
    monitor_.emplace(cuda::pci_bus_id(device));
    facts_ = cuda::gpu_facts(*monitor_, device);
    if (gpus_.size() > 1) cuda::add_peer_link(*monitor_, device, gpus_[1].device, facts_);
    for (auto gpu = gpus_.rbegin(); gpu != gpus_.rend(); ++gpu) {
      int lowest = 0, highest = 0;
      check(cudaSetDevice(gpu->device));
      check(cudaDeviceGetStreamPriorityRange(&lowest, &highest));
      check(cudaStreamCreate(&gpu->stream));
      check(cudaStreamCreateWithPriority(&gpu->transfers, cudaStreamNonBlocking, highest));
      check(cudaEventCreate(&gpu->begin));
      check(cudaEventCreate(&gpu->end));
    }
    hold_.emplace();
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
    if (std::holds_alternative<PeerCopyProbe>(probe) && gpus_.size() == 1) {
      return ranks() == 1 ? "one GPU"
                          : "each process has one GPU; one process that sees several copies";
    }
    if (const auto* a = std::get_if<AttentionShape>(&probe)) {
      if (cudnnGetVersion() < 90600)
        return "cuDNN before 9.6 leaves the clearing of sums to its caller";
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
    check(cudaGetLastError());
    finish();
    made->check_result();
    prepared_.push_back({std::move(made)});
    return static_cast<int>(prepared_.size()) - 1;
  }

  // As nccl-tests does: after a barrier, all runs back to back, the slowest rank's time.
  Sample time(int id, int64_t runs) override {
    constexpr int kTries = 4;
    for (int attempt = 0; attempt < kTries; ++attempt) {
      const auto [sample, covered] = series(prepared_[static_cast<size_t>(id)], runs);
      if (peers_.all(covered)) return sample;
    }
    throw std::runtime_error("what goes on beside a product ends before it");
  }

  void run(int id) override { prepared_[static_cast<size_t>(id)].probe->run(); }

  void finish() override {
    for (auto gpu = gpus_.rbegin(); gpu != gpus_.rend(); ++gpu) {
      check(cudaSetDevice(gpu->device));
      check(cudaStreamSynchronize(gpu->stream));
    }
  }
  void release(int id) override { prepared_[static_cast<size_t>(id)].probe.reset(); }

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

  struct Prepared {
    std::unique_ptr<cuda::PreparedProbe> probe;
    double seconds_a_run = 0;  // as last timed
  };

  // Of one run, and whether what goes on beside it outlasted it. Short kernels are put into the
  // stream while it waits, some at a time, or the processor that launches them would be timed.
  std::pair<Sample, bool> series(Prepared& prepared, int64_t runs) {
    constexpr double kShort = 50e-6;
    constexpr int64_t kHeldRuns = 64;
    cuda::PreparedProbe& probe = *prepared.probe;
    const bool held =
        probe.can_wait() && prepared.seconds_a_run > 0 && prepared.seconds_a_run < kShort;
    finish();
    peers_.barrier();
    probe.begin(runs);
    double seconds = 0;
    Sample sample;
    for (int64_t left = runs; left > 0;) {
      const int64_t now = held ? std::min(left, kHeldRuns) : left;
      left -= now;
      if (held) hold_->keep(gpus_.front().stream);
      for (const LocalGpu& gpu : gpus_) check(cudaEventRecord(gpu.begin, gpu.stream));
      for (int64_t i = 0; i < now; ++i) probe.run();
      check(cudaGetLastError());
      for (const LocalGpu& gpu : gpus_) check(cudaEventRecord(gpu.end, gpu.stream));
      hold_->let_go();
      // While it runs: afterwards the clock is an idle one's.
      if (left == 0) {
        sample = {.clock_mhz = monitor_->clock_mhz(),
                  .watts = monitor_->power(),
                  .slowdown = monitor_->slowdown()};
      }
      finish();
      seconds += slowest_seconds();
    }
    const bool covered = probe.end();
    prepared.seconds_a_run = seconds / static_cast<double>(runs);
    sample.seconds =
        peers_.most(prepared.seconds_a_run / static_cast<double>(probe.kernels_a_run()));
    return {sample, covered};
  }

  // Between its events, of the slowest GPU of this process.
  double slowest_seconds() const {
    double slowest = 0;
    for (const LocalGpu& gpu : gpus_) {
      float milliseconds = 0;
      check(cudaEventElapsedTime(&milliseconds, gpu.begin, gpu.end));
      slowest = std::max(slowest, milliseconds * 1e-3);
    }
    return slowest;
  }

  Peers& peers_;
  std::vector<LocalGpu> gpus_;  // of this process
  DeviceFacts facts_;
  std::optional<cuda::GpuMonitor> monitor_;
  std::optional<cuda::CollectiveGroups> groups_;
  cuda::ProbeRoom room_;
  DeviceMemory workspace_, one_;
  std::optional<cuda::StreamHold> hold_;
  std::vector<Prepared> prepared_;
};

std::string why_no_device(cudaError_t status) {
  if (status == cudaSuccess) return "none is visible";
  int driver = 0, runtime = 0;
  cudaDriverGetVersion(&driver);
  cudaRuntimeGetVersion(&runtime);
  if (driver == 0) return "no NVIDIA driver is here";
  const auto version = [](int v) { return fmt::format("{}.{}", v / 1000, v % 1000 / 10); };
  if (status == cudaErrorInsufficientDriver) {
    return fmt::format("the driver is for CUDA {}, this program for {}", version(driver),
                       version(runtime));
  }
  return cudaGetErrorString(status);
}

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(Peers& peers) {
  int gpus = 0;
  const cudaError_t status = cudaGetDeviceCount(&gpus);
  if (status != cudaSuccess || gpus == 0) {
    throw SpecError({{.field = "--backend",
                      .problem = "no CUDA device: " + why_no_device(status),
                      .allowed = "host, which measures this machine's processor"}});
  }
  return std::make_unique<CudaBackend>(peers, gpus);
}

}  // namespace herdsim
