#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#include "calibrate/cuda/cuda_kernels.h"
#include "calibrate/cuda/endless_copy.h"
#include "calibrate/cuda/prepared_probe.h"

namespace herdsim::cuda {
namespace {

double bf16_at(const void* data, size_t index) {
  uint16_t bits = 0;
  check(cudaMemcpy(&bits, static_cast<const uint16_t*>(data) + index, sizeof(bits),
                   cudaMemcpyDeviceToHost));
  return std::bit_cast<float>(uint32_t{bits} << 16);
}

// A collective on the streams that are given, with its buffers.
class RunningCollective {
 public:
  RunningCollective(CollectiveGroups& groups, const Collective& collective, int blocks,
                    cudaStream_t LocalGpu::*stream)
      : groups_(groups),
        collective_(collective),
        members_(groups.of(collective.ranks, blocks)),
        stream_(stream) {
    for (const CollectiveGroups::Member& member : members_) {
      const LocalGpu& gpu = groups.gpus()[member.gpu];
      check(cudaSetDevice(gpu.device));
      buffers_.push_back(
          {DeviceMemory(collective.buffer_bytes()), DeviceMemory(collective.buffer_bytes())});
      fill_random(buffers_.back()[0].get(), collective.all(), seed(gpu.rank), gpu.*stream);
    }
    check(cudaSetDevice(groups.gpus().front().device));
  }

  void enqueue_once() const {
    check(ncclGroupStart());
    for (size_t i = 0; i < members_.size(); ++i) {
      const LocalGpu& gpu = groups_.gpus()[members_[i].gpu];
      enqueue(collective_, gpu.rank, members_[i].communicator, buffers_[i][0].get(),
              buffers_[i][1].get(), gpu.*stream_);
    }
    check(ncclGroupEnd());
  }

  // Two elements of the first member's result. Every rank's numbers are drawn from its own seed, so
  // they are known here.
  void check_result() const {
    if (members_.empty()) return;
    const int rank = groups_.gpus()[members_.front().gpu].rank;
    const size_t part = collective_.part(), self = static_cast<size_t>(rank);
    const auto ranks = static_cast<size_t>(collective_.ranks);
    const DeviceMemory scratch(collective_.buffer_bytes());
    // By rank and index; one rank's numbers are made at a time.
    std::vector<std::array<double, 2>> wanted_of(ranks);
    for (size_t r = 0; r < ranks; ++r) {
      fill_random(scratch.get(), collective_.all(), seed(static_cast<int>(r)), nullptr);
      for (size_t e = 0; e < 2; ++e) {
        const size_t i = e == 0 ? 0 : part - 1;
        const bool of_own_part =
            collective_.kind == "reduce_scatter" || collective_.kind == "all_to_all";
        wanted_of[r][e] = bf16_at(scratch.get(), of_own_part ? self * part + i : i);
      }
    }
    for (size_t e = 0; e < 2; ++e) {
      const size_t i = e == 0 ? 0 : part - 1;
      double wanted = 0;
      size_t from = 0;  // in the output
      if (collective_.kind == "all_reduce" || collective_.kind == "reduce_scatter") {
        for (size_t r = 0; r < ranks; ++r) wanted += wanted_of[r][e];
      } else if (collective_.kind == "send_recv") {
        wanted = wanted_of[(self + ranks - 1) % ranks][e];
      } else {
        wanted = wanted_of[ranks - 1][e];
        from = (ranks - 1) * part;
      }
      // Sums are rounded to eight bits at every hop.
      const double got = bf16_at(buffers_.front()[1].get(), from + i);
      if (!(std::abs(got - wanted) <= 0.01 * static_cast<double>(ranks)))
        throw std::runtime_error("a collective computes something else than its reference");
    }
  }

 private:
  static uint64_t seed(int rank) { return static_cast<uint64_t>(rank) + 1; }
  CollectiveGroups& groups_;
  Collective collective_;
  const std::vector<CollectiveGroups::Member>& members_;
  cudaStream_t LocalGpu::*stream_;
  std::vector<std::array<DeviceMemory, 2>> buffers_;  // by member: in and out
};

class CollectiveOfRanks : public PreparedProbe {
 public:
  CollectiveOfRanks(const ProbeRoom& room, const Collective& collective)
      : running_(*room.groups, collective, 0, &LocalGpu::stream),
        checks_(collective.bytes <= size_t{16} << 20) {}
  bool can_wait() const override { return false; }
  void run() override { running_.enqueue_once(); }
  void check_result() const override {
    if (checks_) running_.check_result();
  }

 private:
  RunningCollective running_;
  bool checks_;  // larger ones would have a third buffer
};

class ProductBesideCopy : public PreparedProbe {
 public:
  ProductBesideCopy(const ProbeRoom& room, const SharingProbe& sharing)
      : product_(prepare_product(room, sharing.product)), copy_(static_cast<int>(sharing.sms)) {}
  bool can_wait() const override { return false; }
  void run() override { product_->run(); }
  void check_result() const override { product_->check_result(); }
  void begin(int64_t /*runs*/) override { copy_.start(); }
  bool end() override {
    copy_.stop();
    return true;
  }

 private:
  std::unique_ptr<PreparedProbe> product_;
  EndlessCopy copy_;
};

// On every GPU's transfer stream as many collectives as outlast the products of the first GPU.
class ProductBesideCollective : public PreparedProbe {
 public:
  ProductBesideCollective(const ProbeRoom& room, const SharingProbe& sharing)
      : room_(room),
        product_(prepare_product(room, sharing.product)),
        collective_(*room.groups, {sharing.collective, kBytes, room.groups->ranks()},
                    static_cast<int>(sharing.sms), &LocalGpu::transfers) {
    check(cudaEventCreate(&first_));
    check(cudaEventCreate(&last_));
  }
  ~ProductBesideCollective() override {
    cudaEventDestroy(first_);
    cudaEventDestroy(last_);
  }

  bool can_wait() const override { return false; }
  void run() override { product_->run(); }
  void check_result() const override { product_->check_result(); }

  void begin(int64_t runs) override {
    if (product_seconds_ == 0) measure_apart();
    const double wanted =
        factor_ * static_cast<double>(runs) * product_seconds_ / collective_seconds_;
    // As many on every rank.
    const double count = room_.groups->peers().agree(std::clamp(std::ceil(wanted), 1.0, kMost)) + 1;
    collective_.enqueue_once();
    check(cudaEventRecord(first_, transfers()));
    for (double i = 1; i < count; ++i) collective_.enqueue_once();
    check(cudaEventRecord(last_, transfers()));
    check(cudaEventSynchronize(first_));
  }
  bool end() override {
    const bool outlasts = cudaEventQuery(last_) == cudaErrorNotReady;
    cudaGetLastError();  // which that is no error of
    if (!outlasts) factor_ *= 2;
    for (const LocalGpu& gpu : room_.groups->gpus()) check(cudaStreamSynchronize(gpu.transfers));
    return outlasts;
  }

 private:
  static constexpr size_t kBytes = size_t{256} << 20;
  static constexpr double kMost = 4096;

  cudaStream_t transfers() const { return room_.groups->gpus().front().transfers; }

  template <class Work>
  double seconds_of(cudaStream_t stream, const Work& work) {
    constexpr int kRuns = 3;
    check(cudaEventRecord(first_, stream));
    for (int i = 0; i < kRuns; ++i) work();
    check(cudaEventRecord(last_, stream));
    check(cudaEventSynchronize(last_));
    float milliseconds = 0;
    check(cudaEventElapsedTime(&milliseconds, first_, last_));
    return milliseconds * 1e-3 / kRuns;
  }
  void measure_apart() {
    collective_.enqueue_once();
    collective_seconds_ = seconds_of(transfers(), [this] { collective_.enqueue_once(); });
    product_seconds_ = seconds_of(room_.stream, [this] { product_->run(); });
  }

  const ProbeRoom& room_;
  std::unique_ptr<PreparedProbe> product_;
  RunningCollective collective_;
  cudaEvent_t first_ = nullptr, last_ = nullptr;
  double product_seconds_ = 0, collective_seconds_ = 0;  // apart
  double factor_ = 2;                                    // products take longer beside it
};

}  // namespace

std::unique_ptr<PreparedProbe> prepare_collective(const ProbeRoom& room, const CollectiveProbe& c) {
  const int64_t ranks = c.ranks > 0 ? c.ranks : room.groups->ranks();
  return std::make_unique<CollectiveOfRanks>(
      room, Collective{c.kind, static_cast<size_t>(c.bytes.count()), ranks});
}

std::unique_ptr<PreparedProbe> prepare_sharing(const ProbeRoom& room, const SharingProbe& sharing) {
  if (sharing.collective.empty()) return std::make_unique<ProductBesideCopy>(room, sharing);
  return std::make_unique<ProductBesideCollective>(room, sharing);
}

}  // namespace herdsim::cuda
