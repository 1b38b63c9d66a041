#include <algorithm>
#include <vector>

#include "calibrate/cuda/prepared_probe.h"

namespace herdsim::cuda {
namespace {

// Direct where the devices see each other; CUDA stages the copy through the host where they do not.
void let_see(int device, int peer) {
  int can = 0;
  check(cudaDeviceCanAccessPeer(&can, device, peer));
  if (can == 0) return;
  check(cudaSetDevice(device));
  const cudaError_t status = cudaDeviceEnablePeerAccess(peer, 0);
  if (status != cudaErrorPeerAccessAlreadyEnabled) return check(status);
  cudaGetLastError();  // which that is no error of
}

// From the first GPU to the second on the first one's stream; back on the second one's.
class PeerCopy : public PreparedProbe {
 public:
  PeerCopy(const ProbeRoom& room, const PeerCopyProbe& probe)
      : first_(room.groups->gpus()[0]),
        second_(room.groups->gpus()[1]),
        bytes_(static_cast<size_t>(probe.bytes.count())),
        both_ways_(probe.both_ways) {
    let_see(second_.device, first_.device);
    let_see(first_.device, second_.device);
    for (const LocalGpu* gpu : {&second_, &first_}) {
      check(cudaSetDevice(gpu->device));
      buffers_.emplace_back(std::vector<size_t>{bytes_, bytes_}, true, gpu->stream);
      check(cudaStreamSynchronize(gpu->stream));  // the other device's stream does not wait for it
    }
  }

  bool can_wait() const override { return false; }
  void run() override {
    copy(first_, buffers_[1], second_, buffers_[0]);
    if (both_ways_) copy(second_, buffers_[0], first_, buffers_[1]);
    for (RotatingBuffers& buffers : buffers_) buffers.advance();
  }

  // The first and the last bytes of the first set. Both devices' sources hold the same numbers,
  // what they arrive in others.
  void check_result() const override {
    expect_same(buffers_[1], buffers_[0]);
    if (both_ways_) expect_same(buffers_[0], buffers_[1]);
  }

 private:
  void copy(const LocalGpu& from, const RotatingBuffers& out, const LocalGpu& to,
            const RotatingBuffers& in) const {
    check(cudaMemcpyPeerAsync(in.at(1), to.device, out.at(0), from.device, bytes_, from.stream));
  }

  void expect_same(const RotatingBuffers& out, const RotatingBuffers& in) const {
    const size_t count = std::min<size_t>(bytes_, 4096);
    for (const size_t from : {size_t{0}, bytes_ - count}) {
      std::vector<char> sent(count), arrived(count);
      const auto read = [&](std::vector<char>& into, const void* buffer) {
        check(cudaMemcpy(into.data(), static_cast<const char*>(buffer) + from, count,
                         cudaMemcpyDefault));
      };
      read(sent, out.at(0, 0));
      read(arrived, in.at(1, 0));
      if (sent != arrived)
        throw std::runtime_error("a copy to a peer is something else than its source");
    }
  }

  const LocalGpu& first_;
  const LocalGpu& second_;
  size_t bytes_;
  bool both_ways_;
  std::vector<RotatingBuffers> buffers_;  // of the second, of the first: source and destination
};

}  // namespace

std::unique_ptr<PreparedProbe> prepare_peer_copy(const ProbeRoom& room, const PeerCopyProbe& copy) {
  return std::make_unique<PeerCopy>(room, copy);
}

}  // namespace herdsim::cuda
