// A probe that is ready to run on the GPUs of this process, and what probes share.
#pragma once

#include <memory>
#include <vector>

#include "calibrate/cuda/collective_groups.h"
#include "calibrate/cuda/cuda_check.h"
#include "calibrate/harness/backend.h"

namespace herdsim::cuda {

class PreparedProbe {
 public:
  virtual ~PreparedProbe() = default;
  // Once, without waiting.
  virtual void run() = 0;
  // That the probe stands for; the time of a run is shared among them.
  virtual int64_t kernels_a_run() const { return 1; }
  // Whether runs may be put into the stream while it waits: only kernels of one GPU, at most a
  // dozen a run. A copy or a collective may wait for the device itself.
  virtual bool can_wait() const { return true; }
  // After a run. Throws: std::runtime_error where it computed something else than double precision
  // does.
  virtual void check_result() const {}
  // Around a series of runs: what goes on beside them. end() answers whether it went on for as long
  // as they did; where not, the next series has more of it.
  virtual void begin(int64_t /*runs*/) {}
  virtual bool end() { return true; }
};

// Made once; all of it outlives every probe.
struct ProbeRoom {
  cudaStream_t stream = nullptr;  // of the first GPU
  cublasLtHandle_t blas = nullptr;
  cudnnHandle_t dnn = nullptr;
  void* workspace = nullptr;
  size_t workspace_bytes = 0;
  const float* one = nullptr;  // on the device
  CollectiveGroups* groups = nullptr;
};

// Each throws std::runtime_error where a library has nothing for the probe, or there is no memory.
std::unique_ptr<PreparedProbe> prepare_product(const ProbeRoom& room, const GemmShape& shape);
std::unique_ptr<PreparedProbe> prepare_attention(const ProbeRoom& room,
                                                 const AttentionShape& shape);
std::unique_ptr<PreparedProbe> prepare_stream(const ProbeRoom& room, const MemoryTraffic& traffic);
std::unique_ptr<PreparedProbe> prepare_copy(const ProbeRoom& room, const CopyProbe& copy);
// Requires: two GPUs.
std::unique_ptr<PreparedProbe> prepare_peer_copy(const ProbeRoom& room, const PeerCopyProbe& copy);
std::unique_ptr<PreparedProbe> prepare_launch(const ProbeRoom& room);
std::unique_ptr<PreparedProbe> prepare_collective(const ProbeRoom& room, const CollectiveProbe& c);
std::unique_ptr<PreparedProbe> prepare_sharing(const ProbeRoom& room, const SharingProbe& sharing);

// Sets of buffers of random bf16 numbers on the first GPU, as many as exceed its last cache several
// times, gone through in turn.
class RotatingBuffers {
 public:
  RotatingBuffers(const std::vector<size_t>& bytes, bool rotates, cudaStream_t stream);

  size_t sets() const { return sets_; }
  size_t set() const { return next_; }
  void* at(size_t buffer, size_t set) const { return buffers_[buffer].at(set * bytes_[buffer]); }
  void* at(size_t buffer) const { return at(buffer, next_); }
  std::vector<void*> all_of(size_t set) const;
  // Of all sets together.
  size_t bytes(size_t buffer) const { return bytes_[buffer] * sets_; }
  void advance() { next_ = (next_ + 1) % sets_; }

 private:
  std::vector<size_t> bytes_;
  size_t sets_ = 1, next_ = 0;
  std::vector<DeviceMemory> buffers_;
};

}  // namespace herdsim::cuda
