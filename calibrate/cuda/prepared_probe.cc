#include "calibrate/cuda/prepared_probe.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "calibrate/cuda/attention_check.h"
#include "calibrate/cuda/cuda_kernels.h"
#include "calibrate/cuda/fused_attention.h"

namespace herdsim::cuda {
namespace {

constexpr size_t kRotation = size_t{512} << 20;  // ten times the largest L2

class AttentionProbe : public PreparedProbe {
 public:
  AttentionProbe(const ProbeRoom& room, const AttentionShape& shape)
      : room_(room),
        shape_(shape),
        attention_({.handle = room.dnn}, shape),
        buffers_(sizes(), true, room.stream),
        workspace_(std::max<size_t>(attention_.workspace_bytes(), 256)) {
    for (size_t set = 0; set < buffers_.sets(); ++set)
      attention_.bind(buffers_.all_of(set), workspace_.get());
  }
  void run() override {
    attention_.run(room_.dnn, buffers_.set());
    buffers_.advance();
  }
  void check_result() const override { check_attention(shape_, buffers_.all_of(0)); }

 private:
  std::vector<size_t> sizes() const {
    std::vector<size_t> bytes;
    for (size_t i = 0; i < attention_.tensors(); ++i) bytes.push_back(attention_.bytes_of(i));
    return bytes;
  }
  const ProbeRoom& room_;
  AttentionShape shape_;
  FusedAttention attention_;
  RotatingBuffers buffers_;
  DeviceMemory workspace_;
};

class CopyOfProbe : public PreparedProbe {
 public:
  CopyOfProbe(const ProbeRoom& room, const CopyProbe& copy)
      : stream_(room.stream),
        copy_(copy),
        bytes_(static_cast<size_t>(copy.bytes.count())),
        buffer_({bytes_}, false, room.stream) {
    check(cudaMallocHost(&pinned_, bytes_));
    if (!copy_.to_device) return;
    // Random numbers there as well, and others in the device's memory.
    check(cudaMemcpyAsync(pinned_, buffer_.at(0), bytes_, cudaMemcpyDeviceToHost, stream_));
    check(cudaMemsetAsync(buffer_.at(0), 0, bytes_, stream_));
  }
  ~CopyOfProbe() override { cudaFreeHost(pinned_); }
  bool can_wait() const override { return false; }
  void run() override {
    check(copy_.to_device
              ? cudaMemcpyAsync(buffer_.at(0), pinned_, bytes_, cudaMemcpyHostToDevice, stream_)
              : cudaMemcpyAsync(pinned_, buffer_.at(0), bytes_, cudaMemcpyDeviceToHost, stream_));
  }
  // The last bytes, by a copy of pageable memory, which takes another way.
  void check_result() const override {
    std::array<char, 256> got{};
    const size_t count = std::min(bytes_, got.size()), from = bytes_ - count;
    check(cudaMemcpy(got.data(), static_cast<const char*>(buffer_.at(0)) + from, count,
                     cudaMemcpyDeviceToHost));
    if (std::memcmp(got.data(), static_cast<const char*>(pinned_) + from, count) != 0)
      throw std::runtime_error("a copy is something else than its source");
  }

 private:
  cudaStream_t stream_;
  CopyProbe copy_;
  size_t bytes_;
  RotatingBuffers buffer_;
  void* pinned_ = nullptr;
};

class LaunchOfNothing : public PreparedProbe {
 public:
  explicit LaunchOfNothing(const ProbeRoom& room) : stream_(room.stream) {}
  void run() override { launch_nothing(stream_); }

 private:
  cudaStream_t stream_;
};

}  // namespace

RotatingBuffers::RotatingBuffers(const std::vector<size_t>& bytes, bool rotates,
                                 cudaStream_t stream) {
  size_t set = 0;
  for (const size_t b : bytes) {
    bytes_.push_back((b + 255) / 256 * 256);
    set += bytes_.back();
  }
  if (rotates) sets_ = std::clamp<size_t>(kRotation / std::max<size_t>(set, 1), 2, 1024);
  for (const size_t b : bytes_) {
    buffers_.emplace_back(b * sets_);
    fill_random(buffers_.back().get(), b * sets_ / 2, buffers_.size(), stream);
  }
}

std::vector<void*> RotatingBuffers::all_of(size_t set) const {
  std::vector<void*> pointers;
  for (size_t i = 0; i < buffers_.size(); ++i) pointers.push_back(at(i, set));
  return pointers;
}

std::unique_ptr<PreparedProbe> prepare_attention(const ProbeRoom& room,
                                                 const AttentionShape& shape) {
  return std::make_unique<AttentionProbe>(room, shape);
}
std::unique_ptr<PreparedProbe> prepare_copy(const ProbeRoom& room, const CopyProbe& copy) {
  return std::make_unique<CopyOfProbe>(room, copy);
}
std::unique_ptr<PreparedProbe> prepare_launch(const ProbeRoom& room) {
  return std::make_unique<LaunchOfNothing>(room);
}

}  // namespace herdsim::cuda
