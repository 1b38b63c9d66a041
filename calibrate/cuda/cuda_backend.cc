#include "calibrate/cuda/cuda_backend.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "calibrate/cuda/attention_check.h"
#include "calibrate/cuda/cuda_kernels.h"
#include "calibrate/cuda/endless_copy.h"
#include "calibrate/cuda/fused_attention.h"
#include "calibrate/cuda/gpu_monitor.h"
#include "calibrate/cuda/kernel_references.h"
#include "calibrate/cuda/matmul.h"
#include "sim/base/error.h"

namespace herdsim {
namespace {

using cuda::check;
using cuda::DeviceMemory;

constexpr size_t kWorkspace = size_t{64} << 20;
constexpr size_t kRotation = size_t{512} << 20;  // ten times the largest L2
constexpr size_t kWidth = 8192;                  // of rows of own kernels

// Dense bf16 peaks of the boards: NVIDIA's data sheets (vendor).
struct BoardPeak {
  std::string_view name;
  double flops;
};
constexpr std::array<BoardPeak, 5> kBoards = {{{"H100 PCIe", 756e12},
                                               {"H100 NVL", 835e12},
                                               {"H100", 989.4e12},
                                               {"H200", 989.4e12},
                                               {"A100", 312e12}}};

// What the probe's product is, its own or one beside something; null where it has none.
const GemmShape* product_of(const Probe& probe) {
  const auto* sharing = std::get_if<SharingProbe>(&probe);
  return sharing != nullptr ? &sharing->product : std::get_if<GemmShape>(&probe);
}

// A probe with its buffers on the first GPU; `copies` sets of them are gone through in turn.
struct Prepared {
  Probe probe;
  std::unique_ptr<cuda::Matmul> matmul;
  std::unique_ptr<cuda::FusedAttention> attention;
  std::vector<size_t> bytes;  // of each buffer of one set
  std::vector<DeviceMemory> buffers;
  std::vector<std::array<DeviceMemory, 2>> of_gpu;  // collectives: in and out on every GPU
  std::vector<char> host;
  void* pinned = nullptr;
  size_t copies = 1, next = 0;
  ~Prepared() {
    if (pinned != nullptr) cudaFreeHost(pinned);
  }
  void* at(size_t buffer) const { return buffers[buffer].at(next * bytes[buffer]); }
};

class CudaBackend : public Backend {
 public:
  explicit CudaBackend(int gpus) : gpus_(gpus) {
    check(cudaSetDevice(0));
    cudaDeviceProp properties{};
    check(cudaGetDeviceProperties(&properties, 0));
    std::array<char, 32> bus{};
    check(cudaDeviceGetPCIBusId(bus.data(), static_cast<int>(bus.size()), 0));
    monitor_.emplace(bus.data());
    read_facts(properties);
    streams_.resize(static_cast<size_t>(gpus));
    communicators_.resize(static_cast<size_t>(gpus));
    for (int gpu = 0; gpu < gpus; ++gpu) {
      check(cudaSetDevice(gpu));
      check(cudaStreamCreate(&streams_[static_cast<size_t>(gpu)]));
    }
    if (gpus > 1) check(ncclCommInitAll(communicators_.data(), gpus, nullptr));
    check(cudaSetDevice(0));
    check(cublasLtCreate(&blas_));
    check(cudnnCreate(&dnn_));
    check(cudnnSetStream(dnn_, streams_[0]));
    check(cudaEventCreate(&begin_));
    check(cudaEventCreate(&end_));
    workspace_ = DeviceMemory(kWorkspace);
    const float one = 1;
    one_ = DeviceMemory(sizeof(float));
    check(cudaMemcpy(one_.get(), &one, sizeof(one), cudaMemcpyHostToDevice));
    cuda::check_own_kernels(6, 512);
    cuda::check_own_kernels(3, kWidth);
  }

  ~CudaBackend() override {
    prepared_.clear();
    for (const ncclComm_t c : communicators_) {
      if (c != nullptr) ncclCommDestroy(c);
    }
    cudaEventDestroy(begin_);
    cudaEventDestroy(end_);
    cudnnDestroy(dnn_);
    cublasLtDestroy(blas_);
    for (const cudaStream_t s : streams_) cudaStreamDestroy(s);
  }

  const DeviceFacts& facts() const override { return facts_; }
  int64_t ranks() const override { return gpus_; }
  int64_t nodes_of(int64_t /*ranks*/) const override { return 1; }
  bool all(bool value) override { return value; }
  bool leads() const override { return true; }
  double agree(double value) override { return value; }

  std::string why_not(const Probe& probe) const override {
    if (std::holds_alternative<PeakProbe>(probe))
      return "the peak is the data sheet's, or the fastest product's";
    if (std::holds_alternative<CollectiveProbe>(probe) && gpus_ == 1) return "one GPU";
    if (const auto* a = std::get_if<AttentionShape>(&probe)) {
      if (a->mask_fraction != 1 && a->mask_fraction != 0.5) return "masks are full or causal";
      if (a->mask_fraction < 1 && a->query_tokens != a->kv_tokens)
        return "a causal mask is of as many queries as keys";
    }
    if (const GemmShape* g = product_of(probe)) {
      if (g->dtype == DataType::kFp8 && g->pass != GemmPass::kForward)
        return "fp8 products have the forward layout only";
      if (g->dtype != DataType::kBf16 && g->dtype != DataType::kFp8)
        return "products are bf16 or fp8";
      if (g->n % 8 != 0 || g->k % 8 != 0 || g->m % 8 != 0) return "sizes are multiples of 8";
    }
    return "";
  }

  int prepare(const Probe& probe) override {
    auto p = std::make_unique<Prepared>();
    p->probe = probe;
    if (const GemmShape* g = product_of(probe)) prepare_product(*g, *p);
    if (const auto* a = std::get_if<AttentionShape>(&probe)) prepare_attention(*a, *p);
    if (const auto* s = std::get_if<MemoryTraffic>(&probe)) prepare_stream(*s, *p);
    if (const auto* c = std::get_if<CopyProbe>(&probe)) prepare_copy(*c, *p);
    if (const auto* c = std::get_if<CollectiveProbe>(&probe)) prepare_collective(*c, *p);
    prepared_.push_back(std::move(p));
    const int id = static_cast<int>(prepared_.size()) - 1;
    run(id);
    finish();
    if (const GemmShape* g = product_of(probe)) check_product(*g, *prepared_.back());
    if (const auto* a = std::get_if<AttentionShape>(&probe))
      cuda::check_attention(*a, attention_tensors(*prepared_.back(), 0));
    return id;
  }

  Sample time(int id, int64_t runs) override {
    finish();
    std::optional<cuda::EndlessCopy> beside;
    if (const auto* s = std::get_if<SharingProbe>(&prepared_[static_cast<size_t>(id)]->probe)) {
      beside.emplace(static_cast<int>(s->sms));
    }
    check(cudaEventRecord(begin_, streams_[0]));
    for (int64_t i = 0; i < runs; ++i) run(id);
    check(cudaEventRecord(end_, streams_[0]));
    // While it runs: afterwards the clock is an idle one's.
    const double clock = monitor_->clock_mhz();
    finish();
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, begin_, end_));
    return {.seconds = milliseconds * 1e-3 / static_cast<double>(runs), .clock_mhz = clock};
  }

  void run(int id) override {
    Prepared& p = *prepared_[static_cast<size_t>(id)];
    const cudaStream_t stream = streams_[0];
    if (const GemmShape* g = product_of(p.probe)) {
      const float* scale =
          g->dtype == DataType::kFp8 ? static_cast<const float*>(one_.get()) : nullptr;
      p.matmul->run(p.at(0), p.at(1), p.at(2), scale, stream);
    } else if (std::holds_alternative<AttentionShape>(p.probe)) {
      p.attention->run(dnn_, p.next);
    } else if (const auto* s = std::get_if<MemoryTraffic>(&p.probe)) {
      run_stream(*s, p, stream);
    } else if (const auto* c = std::get_if<CopyProbe>(&p.probe)) {
      const auto bytes = static_cast<size_t>(c->bytes.count());
      check(c->to_device
                ? cudaMemcpyAsync(p.at(0), p.pinned, bytes, cudaMemcpyHostToDevice, stream)
                : cudaMemcpyAsync(p.pinned, p.at(0), bytes, cudaMemcpyDeviceToHost, stream));
    } else if (const auto* collective = std::get_if<CollectiveProbe>(&p.probe)) {
      run_collective(*collective, p);
    } else {
      cuda::launch_nothing(stream);
    }
    check(cudaGetLastError());
    p.next = (p.next + 1) % p.copies;
  }

  void finish() override {
    for (int gpu = gpus_ - 1; gpu >= 0; --gpu) {
      check(cudaSetDevice(gpu));
      check(cudaStreamSynchronize(streams_[static_cast<size_t>(gpu)]));
    }
  }
  void release(int id) override { prepared_[static_cast<size_t>(id)].reset(); }

 private:
  void read_facts(const cudaDeviceProp& properties) {
    int driver = 0, runtime = 0, nccl = 0, clock_khz = 0, bus_bits = 0;
    check(cudaDriverGetVersion(&driver));
    check(cudaRuntimeGetVersion(&runtime));
    check(ncclGetVersion(&nccl));
    cudaDeviceGetAttribute(&clock_khz, cudaDevAttrMemoryClockRate, 0);
    cudaDeviceGetAttribute(&bus_bits, cudaDevAttrGlobalMemoryBusWidth, 0);
    facts_ = {.name = properties.name,
              .software = fmt::format("driver {}, CUDA {}.{}, cuBLASLt {}, cuDNN {}, NCCL {}",
                                      monitor_->driver(), runtime / 1000, runtime % 1000 / 10,
                                      cublasLtGetVersion(), cudnnGetVersion(), nccl),
              .memory = Bytes(static_cast<int64_t>(properties.totalGlobalMem)),
              .multiprocessors = properties.multiProcessorCount,
              .watts = monitor_->power_limit(),
              // Two transfers a clock.
              .memory_rate = 2.0 * clock_khz * 1e3 * bus_bits / 8,
              .attention_kernels = {"cudnn9"}};
    for (const BoardPeak& board : kBoards) {
      if (facts_.name.find(board.name) == std::string::npos) continue;
      facts_.peak_flops = board.flops;
      break;
    }
  }

  // `sets` of buffers of these sizes, random, as many as exceed the last cache several times.
  void allocate(std::vector<size_t> bytes, Prepared& p, bool rotates = true) {
    size_t set = 0;
    for (size_t& b : bytes) {
      b = (b + 255) / 256 * 256;
      set += b;
    }
    p.copies = rotates ? std::clamp<size_t>(kRotation / std::max<size_t>(set, 1), 2, 1024) : 1;
    p.bytes = bytes;
    for (const size_t b : bytes) {
      p.buffers.emplace_back(b * p.copies);
      cuda::fill_random(p.buffers.back().get(), b * p.copies / 2, p.buffers.size(), streams_[0]);
    }
  }

  void prepare_product(const GemmShape& g, Prepared& p) {
    const auto m = static_cast<size_t>(g.m), n = static_cast<size_t>(g.n),
               k = static_cast<size_t>(g.k);
    const auto in = static_cast<size_t>(bytes_per_element(g.dtype));
    allocate({m * k * in, n * k * in, m * n * (g.pass == GemmPass::kWgrad ? 4 : 2)}, p);
    if (g.dtype == DataType::kFp8) {
      // Random bytes hold the format's NaN; 0x30 to 0x3f are numbers about one.
      for (size_t i = 0; i < 2; ++i)
        check(cudaMemsetAsync(p.buffers[i].get(), 0x38, p.bytes[i] * p.copies, streams_[0]));
    }
    if (g.pass == GemmPass::kWgrad)
      check(cudaMemsetAsync(p.buffers[2].get(), 0, p.bytes[2] * p.copies, streams_[0]));
    p.matmul = std::make_unique<cuda::Matmul>(blas_, g, workspace_.get(), kWorkspace);
  }

  // The first element of the first copy, in double precision.
  void check_product(const GemmShape& g, const Prepared& p) const {
    if (g.dtype != DataType::kBf16) return;
    const auto element = [&](size_t buffer, int64_t index) {
      uint16_t raw = 0;
      check(cudaMemcpy(&raw, static_cast<char*>(p.buffers[buffer].get()) + 2 * index, 2,
                       cudaMemcpyDeviceToHost));
      const uint32_t bits = static_cast<uint32_t>(raw) << 16;
      float value = 0;
      static_assert(sizeof(bits) == sizeof(value));
      std::copy_n(reinterpret_cast<const char*>(&bits), sizeof(bits),
                  reinterpret_cast<char*>(&value));
      return static_cast<double>(value);
    };
    double wanted = 0, size = 0;
    for (int64_t l = 0; l < g.k; ++l) {
      const double term = element(0, g.pass == GemmPass::kWgrad ? l * g.m : l) *
                          element(1, g.pass == GemmPass::kForward ? l : l * g.n);
      wanted += term;
      size += std::abs(term);
    }
    double got = 0;
    if (g.pass == GemmPass::kWgrad) {
      float value = 0;
      check(cudaMemcpy(&value, p.buffers[2].get(), sizeof(value), cudaMemcpyDeviceToHost));
      got = value;
    } else {
      got = element(2, 0);
    }
    if (std::abs(got - wanted) > 0.01 * std::abs(wanted) + 1e-3 * size) {
      throw std::runtime_error("a product computes something else than its reference");
    }
  }

  static std::vector<void*> attention_tensors(const Prepared& p, size_t copy) {
    std::vector<void*> tensors;
    for (size_t i = 0; i < p.attention->tensors(); ++i)
      tensors.push_back(p.buffers[i].at(copy * p.bytes[i]));
    return tensors;
  }

  void prepare_attention(const AttentionShape& a, Prepared& p) {
    p.attention = std::make_unique<cuda::FusedAttention>(cuda::CudnnTarget{.handle = dnn_}, a);
    std::vector<size_t> bytes;
    for (size_t i = 0; i < p.attention->tensors(); ++i) bytes.push_back(p.attention->bytes_of(i));
    allocate(bytes, p);
    p.buffers.emplace_back(std::max<size_t>(p.attention->workspace_bytes(), 256));
    for (size_t copy = 0; copy < p.copies; ++copy)
      p.attention->bind(attention_tensors(p, copy), p.buffers.back().get());
  }

  // Fused: a quarter of the bytes each by RMSNorm, SwiGLU, RoPE and cross-entropy, which read and
  // write 2 + 2, 4 + 2, 2 + 2 and 6 + 2 bytes an element. Framework: one operation, read and
  // written. Optimizer: 28 bytes a parameter.
  static constexpr std::array<size_t, 4> kFusedBytes = {4, 6, 4, 8};
  static size_t fused_rows(const MemoryTraffic& s, size_t kernel) {
    const auto bytes = static_cast<size_t>(s.moved.count());
    return std::max<size_t>(1, bytes / 4 / (kFusedBytes[kernel] * kWidth));
  }

  void prepare_stream(const MemoryTraffic& s, Prepared& p) {
    const auto bytes = static_cast<size_t>(s.moved.count());
    if (s.stream == StreamClass::kOptimizer) {
      const size_t n = bytes / 28 + 1;
      allocate({2 * n, 2 * n, 4 * n, 4 * n, 4 * n}, p);
      for (size_t i = 2; i < 5; ++i)
        check(cudaMemsetAsync(p.buffers[i].get(), 0, p.bytes[i] * p.copies, streams_[0]));
      return;
    }
    if (s.stream == StreamClass::kFramework) return allocate({bytes / 2 + 4, bytes / 2 + 4}, p);
    const size_t most = fused_rows(s, 0) * kWidth * 2;
    allocate({most, most, most, kWidth * 2, (fused_rows(s, 3) + 1) * 4, (fused_rows(s, 3) + 1) * 4},
             p);
    check(cudaMemsetAsync(p.buffers[4].get(), 0, p.bytes[4] * p.copies,
                          streams_[0]));  // targets: class 0
  }

  void run_stream(const MemoryTraffic& s, const Prepared& p, cudaStream_t stream) const {
    const auto bytes = static_cast<size_t>(s.moved.count());
    if (s.stream == StreamClass::kOptimizer) {
      cuda::fused_adam(p.at(0), p.at(1), static_cast<float*>(p.at(2)), static_cast<float*>(p.at(3)),
                       static_cast<float*>(p.at(4)), bytes / 28, stream);
    } else if (s.stream == StreamClass::kFramework) {
      cuda::scale(p.at(0), p.at(1), bytes / 4, stream);
    } else {
      cuda::rms_norm(p.at(0), p.at(3), p.at(2), fused_rows(s, 0), kWidth, stream);
      cuda::swiglu(p.at(0), p.at(1), p.at(2), fused_rows(s, 1) * kWidth, stream);
      cuda::rope(p.at(1), p.at(2), fused_rows(s, 2), kWidth, stream);
      cuda::cross_entropy(p.at(0), static_cast<const int32_t*>(p.at(4)),
                          static_cast<float*>(p.at(5)), fused_rows(s, 3), kWidth, stream);
    }
  }

  void prepare_copy(const CopyProbe& c, Prepared& p) {
    const auto bytes = static_cast<size_t>(c.bytes.count());
    allocate({bytes}, p, false);
    check(cudaMallocHost(&p.pinned, bytes));
  }

  void prepare_collective(const CollectiveProbe& c, Prepared& p) {
    const size_t bytes = static_cast<size_t>(c.bytes.count()) + 256 * static_cast<size_t>(gpus_);
    for (int gpu = 0; gpu < gpus_; ++gpu) {
      check(cudaSetDevice(gpu));
      p.of_gpu.push_back({DeviceMemory(bytes), DeviceMemory(bytes)});
      cuda::fill_random(p.of_gpu.back()[0].get(), bytes / 2, static_cast<uint64_t>(gpu),
                        streams_[static_cast<size_t>(gpu)]);
    }
    check(cudaSetDevice(0));
  }

  void run_collective(const CollectiveProbe& c, const Prepared& p) const {
    const auto gpus = static_cast<size_t>(gpus_);
    const size_t all = std::max<size_t>(gpus, static_cast<size_t>(c.bytes.count()) / 2),
                 part = all / gpus;
    check(ncclGroupStart());
    for (size_t g = 0; g < gpus; ++g) {
      void* in = p.of_gpu[g][0].get();
      void* out = p.of_gpu[g][1].get();
      const ncclComm_t comm = communicators_[g];
      const cudaStream_t stream = streams_[g];
      if (c.kind == "all_reduce") {
        check(ncclAllReduce(in, out, all, ncclBfloat16, ncclSum, comm, stream));
      } else if (c.kind == "all_gather") {
        check(ncclAllGather(in, out, part, ncclBfloat16, comm, stream));
      } else if (c.kind == "reduce_scatter") {
        check(ncclReduceScatter(in, out, part, ncclBfloat16, ncclSum, comm, stream));
      } else if (c.kind == "all_to_all") {
        for (size_t peer = 0; peer < gpus; ++peer) {
          check(ncclSend(static_cast<char*>(in) + 2 * part * peer, part, ncclBfloat16,
                         static_cast<int>(peer), comm, stream));
          check(ncclRecv(static_cast<char*>(out) + 2 * part * peer, part, ncclBfloat16,
                         static_cast<int>(peer), comm, stream));
        }
      } else {
        check(ncclSend(in, all, ncclBfloat16, static_cast<int>((g + 1) % gpus), comm, stream));
        check(ncclRecv(out, all, ncclBfloat16, static_cast<int>((g + gpus - 1) % gpus), comm,
                       stream));
      }
    }
    check(ncclGroupEnd());
  }

  int gpus_;
  DeviceFacts facts_;
  std::optional<cuda::GpuMonitor> monitor_;
  std::vector<cudaStream_t> streams_;
  std::vector<ncclComm_t> communicators_;
  cublasLtHandle_t blas_ = nullptr;
  cudnnHandle_t dnn_ = nullptr;
  cudaEvent_t begin_ = nullptr, end_ = nullptr;
  DeviceMemory workspace_, one_;
  std::vector<std::unique_ptr<Prepared>> prepared_;
};

}  // namespace

std::unique_ptr<Backend> make_cuda_backend(Peers& /*peers*/) {
  int gpus = 0;
  const cudaError_t status = cudaGetDeviceCount(&gpus);
  if (status != cudaSuccess || gpus == 0) {
    throw SpecError(
        {{.field = "--backend",
          .problem = std::string("no CUDA device: ") +
                     (status != cudaSuccess ? cudaGetErrorString(status) : "none is visible"),
          .allowed = "host, which measures this machine's processor"}});
  }
  return std::make_unique<CudaBackend>(gpus);
}

}  // namespace herdsim
