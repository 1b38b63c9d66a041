#include <algorithm>
#include <array>

#include "calibrate/cuda/cuda_kernels.h"
#include "calibrate/cuda/prepared_probe.h"

namespace herdsim::cuda {
namespace {

constexpr size_t kWidth = 8192;  // of rows

// Read and written once by one stock operation.
class FrameworkStream : public PreparedProbe {
 public:
  FrameworkStream(const ProbeRoom& room, size_t bytes)
      : stream_(room.stream),
        elements_(bytes / 4),
        buffers_({bytes / 2 + 4, bytes / 2 + 4}, true, stream_) {}
  void run() override {
    scale(buffers_.at(0), buffers_.at(1), elements_, stream_);
    buffers_.advance();
  }

 private:
  cudaStream_t stream_;
  size_t elements_;
  RotatingBuffers buffers_;
};

// 28 bytes a parameter.
class OptimizerStream : public PreparedProbe {
 public:
  OptimizerStream(const ProbeRoom& room, size_t bytes)
      : stream_(room.stream),
        count_(bytes / 28 + 1),
        buffers_({2 * count_, 2 * count_, 4 * count_, 4 * count_, 4 * count_}, true, stream_) {
    // Moments and master copies in fp32, of which pairs of bf16 are none.
    for (size_t i = 2; i < 5; ++i)
      check(cudaMemsetAsync(buffers_.at(i, 0), 0, buffers_.bytes(i), stream_));
    fill_random_floats(static_cast<float*>(buffers_.at(2, 0)), buffers_.bytes(2) / 4, 7, stream_);
  }
  void run() override {
    fused_adam(buffers_.at(0), buffers_.at(1), static_cast<float*>(buffers_.at(2)),
               static_cast<float*>(buffers_.at(3)), static_cast<float*>(buffers_.at(4)), count_,
               stream_);
    buffers_.advance();
  }

 private:
  cudaStream_t stream_;
  size_t count_;
  RotatingBuffers buffers_;
};

// As many bytes each by RMSNorm, SwiGLU, RoPE and cross-entropy, which read and write 2 + 2, 4 + 2,
// 2 + 2 and 2 + 2 bytes an element: the mean of four kernels. A row that is read again is in the
// cache.
class FusedStream : public PreparedProbe {
 public:
  FusedStream(const ProbeRoom& room, size_t bytes)
      : stream_(room.stream), bytes_(bytes), buffers_(sizes(), true, stream_) {
    // Targets: class 0.
    check(cudaMemsetAsync(buffers_.at(4, 0), 0, buffers_.bytes(4), stream_));
  }
  void run() override {
    rms_norm(buffers_.at(0), buffers_.at(3), buffers_.at(2), rows(0), kWidth, stream_);
    swiglu(buffers_.at(0), buffers_.at(1), buffers_.at(2), rows(1) * kWidth, stream_);
    rope(buffers_.at(1), buffers_.at(2), rows(2), kWidth, stream_);
    cross_entropy(buffers_.at(0), static_cast<const int32_t*>(buffers_.at(4)),
                  static_cast<float*>(buffers_.at(5)), rows(3), kWidth, stream_);
    buffers_.advance();
  }
  int64_t kernels_a_run() const override { return kBytes.size(); }

 private:
  static constexpr std::array<size_t, 4> kBytes = {4, 6, 4, 4};
  size_t rows(size_t kernel) const {
    return std::max<size_t>(1, bytes_ / (kBytes[kernel] * kWidth));
  }
  std::vector<size_t> sizes() const {
    const size_t most = rows(0) * kWidth * 2, words = (rows(3) + 1) * 4;
    return {most, most, most, kWidth * 2, words, words};
  }
  cudaStream_t stream_;
  size_t bytes_;
  RotatingBuffers buffers_;
};

}  // namespace

std::unique_ptr<PreparedProbe> prepare_stream(const ProbeRoom& room, const MemoryTraffic& traffic) {
  const auto bytes = static_cast<size_t>(traffic.moved.count());
  switch (traffic.stream) {
    case StreamClass::kFused:
      return std::make_unique<FusedStream>(room, bytes);
    case StreamClass::kFramework:
      return std::make_unique<FrameworkStream>(room, bytes);
    case StreamClass::kOptimizer:
      return std::make_unique<OptimizerStream>(room, bytes);
  }
  return nullptr;
}

}  // namespace herdsim::cuda
