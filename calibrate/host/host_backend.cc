#include "calibrate/host/host_backend.h"

#include <cblas.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <fstream>
#include <stdexcept>

#include "calibrate/host/host_kernels.h"
#include "sim/base/rng.h"

namespace herdsim {
namespace {

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int64_t last_cache_bytes() {
  const int64_t found = sysconf(_SC_LEVEL3_CACHE_SIZE);
  return found > 0 ? found : int64_t{32} << 20;
}

std::string processor_name() {
  std::ifstream in("/proc/cpuinfo");
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
  }
  return "host";
}

// Floats that a probe reads and writes in one run, by buffer.
struct BufferSizes {
  std::vector<int64_t> floats;
  int64_t scratch = 0;  // not rotated: it lives in the cache, as in a fused kernel
};

struct SizesOf {
  BufferSizes operator()(const GemmShape& g) const {
    return {{g.groups * g.m * g.k, g.groups * g.n * g.k, g.groups * g.m * g.n}, 0};
  }
  BufferSizes operator()(const AttentionShape& a) const {
    const int64_t q = a.batch * a.heads * a.query_tokens * a.head_dim;
    const int64_t kv = a.batch * a.heads * a.kv_tokens * a.head_dim;
    if (a.pass == AttentionPass::kForward) return {{q, kv, kv, q}, a.query_tokens * a.kv_tokens};
    return {{q, kv, kv, q, q, kv, kv}, 2 * a.query_tokens * a.kv_tokens};
  }
  BufferSizes operator()(const MemoryTraffic& s) const {
    const int64_t bytes = s.moved.count();
    if (s.stream == StreamClass::kOptimizer)
      return {{bytes / 28 + 1, bytes / 28 + 1, bytes / 28 + 1, bytes / 28 + 1}, 0};
    return {{bytes / 8 + 1, bytes / 8 + 1}, 0};
  }
  BufferSizes operator()(const CollectiveProbe& c) const {
    const int64_t floats = c.bytes.count() / 4 + ranks;
    return {{floats, floats}, 0};
  }
  BufferSizes operator()(const CopyProbe& c) const {
    return {{c.bytes.count() / 4 + 1, c.bytes.count() / 4 + 1}, 0};
  }
  BufferSizes operator()(const PeerCopyProbe& /*refused*/) const { return {}; }
  BufferSizes operator()(const SharingProbe& s) const { return (*this)(s.product); }
  BufferSizes operator()(const LaunchProbe& /*launch*/) const { return {{4, 4}, 0}; }
  BufferSizes operator()(const PeakProbe& /*peak*/) const { return {{1}, 0}; }
  int64_t ranks;
};

// One probe with its buffers: copies of the set, gone through in turn.
struct Prepared {
  Probe probe;
  std::vector<std::vector<float>> buffers;
  std::vector<int64_t> strides;
  std::vector<float> scratch;
  int64_t copies = 1, next = 0;

  float* at(size_t buffer) { return buffers[buffer].data() + next * strides[buffer]; }
  std::span<float> span(size_t buffer) {
    return {at(buffer), static_cast<size_t>(strides[buffer])};
  }
};

struct RunOn {
  Prepared& p;
  Peers& peers;

  void operator()(const GemmShape& g) const {
    for (int64_t i = 0; i < g.groups; ++i)
      product(g, p.at(0) + i * g.m * g.k, p.at(1) + i * g.n * g.k, p.at(2) + i * g.m * g.n);
  }
  void operator()(const AttentionShape& a) const {
    const bool backward = a.pass == AttentionPass::kBackward;
    attention(a, p.at(0), p.at(1), p.at(2), backward ? p.at(3) : nullptr,
              backward ? nullptr : p.at(3), backward ? p.at(4) : nullptr,
              backward ? p.at(5) : nullptr, backward ? p.at(6) : nullptr, p.scratch.data());
  }
  void operator()(const MemoryTraffic& s) const {
    if (s.stream == StreamClass::kOptimizer)
      return adam_step({p.span(0), p.span(1), p.span(2), p.span(3)});
    scale_stream(p.span(0), p.span(1));
  }
  void operator()(const CollectiveProbe& c) const {
    peers.collective(c.kind, p.at(0), p.at(1),
                     std::max<int64_t>(peers.ranks(), c.bytes.count() / 4));
  }
  void operator()(const CopyProbe& c) const {
    std::memcpy(p.at(1), p.at(0), static_cast<size_t>(c.bytes.count()));
  }
  void operator()(const PeerCopyProbe& /*refused*/) const {}
  void operator()(const SharingProbe& /*refused*/) const {}
  void operator()(const LaunchProbe& /*launch*/) const { scale_stream(p.span(0), p.span(1)); }
  void operator()(const PeakProbe& /*peak*/) const { *p.at(0) = burn_flops(kPeakProbeFlops); }
};

class HostBackend : public Backend {
 public:
  explicit HostBackend(Peers& peers) : peers_(peers) {
    openblas_set_num_threads(1);
    facts_ = {.name = processor_name() + ", one core a rank",
              .software = fmt::format("{}; {}", openblas_get_config(), peers.version()),
              .memory = Bytes(static_cast<int64_t>(sysconf(_SC_PHYS_PAGES)) *
                              sysconf(_SC_PAGESIZE) / peers.ranks()),
              .product_type = DataType::kFp32,
              .attention_kernels = {"unfused"}};
  }

  const DeviceFacts& facts() const override { return facts_; }
  int64_t ranks() const override { return peers_.ranks(); }
  int64_t nodes_of(int64_t ranks) const override { return peers_.nodes_of(ranks); }
  bool leads() const override { return peers_.rank() == 0; }
  bool alone() const override { return peers_.ranks() == 1; }
  double agree(double value) override { return peers_.agree(value); }
  bool all(bool value) override { return peers_.all(value); }

  std::string why_not(const Probe& probe) const override {
    if (std::holds_alternative<CollectiveProbe>(probe) && peers_.ranks() == 1)
      return "one rank; start it with mpirun -n 2";
    if (const auto* c = std::get_if<CollectiveProbe>(&probe);
        c != nullptr && c->ranks > 0 && c->ranks < peers_.ranks()) {
      return "collectives on the host are of all ranks";
    }
    if (std::holds_alternative<PeerCopyProbe>(probe))
      return "a processor has no copy engine; send_recv is what passes between ranks";
    if (std::holds_alternative<SharingProbe>(probe)) return "a processor has no SMs to share";
    if (const auto* g = std::get_if<GemmShape>(&probe);
        g != nullptr && g->dtype == DataType::kFp8) {
      return "this processor has no fp8";
    }
    if (const auto* a = std::get_if<AttentionShape>(&probe);
        a != nullptr && a->value_head_dim > 0 && a->value_head_dim != a->head_dim) {
      return "attention on the host has values as wide as keys";
    }
    int64_t floats = 0;
    const BufferSizes sizes = std::visit(SizesOf{peers_.ranks()}, probe);
    for (const int64_t n : sizes.floats) floats += n;
    if ((floats + sizes.scratch) * 4 > facts_.memory.count() / 4)
      return "does not fit a quarter of the memory";
    return "";
  }

  int prepare(const Probe& probe) override {
    check(probe);
    const BufferSizes sizes = std::visit(SizesOf{peers_.ranks()}, probe);
    int64_t bytes = 0;
    for (const int64_t n : sizes.floats) bytes += 4 * n;
    auto prepared = std::make_unique<Prepared>();
    prepared->probe = probe;
    // Tiny probes are about the call, not about memory.
    const bool rotates =
        !std::holds_alternative<LaunchProbe>(probe) && !std::holds_alternative<PeakProbe>(probe);
    constexpr int64_t kMostBytes = int64_t{192} << 20;
    const int64_t wanted = std::min(2 * last_cache_bytes(), kMostBytes);
    prepared->copies =
        rotates ? std::clamp<int64_t>(wanted / std::max<int64_t>(bytes, 1), 2, 4096) : 1;
    if (2 * bytes > kMostBytes) prepared->copies = 1;
    RngStream random(1, "calibrate/host buffers", static_cast<uint64_t>(peers_.rank()));
    std::vector<float> noise(4099);  // no multiple of a line, so that copies differ
    for (float& v : noise) v = static_cast<float>(random.uniform() - 0.5);
    for (const int64_t n : sizes.floats) {
      std::vector<float> buffer(static_cast<size_t>(n * prepared->copies));
      for (size_t at = 0; at < buffer.size(); at += noise.size()) {
        const size_t count = std::min(noise.size(), buffer.size() - at);
        std::memcpy(buffer.data() + at, noise.data(), count * sizeof(float));
      }
      prepared->buffers.push_back(std::move(buffer));
      prepared->strides.push_back(n);
    }
    // Adam's second moment is positive.
    if (const auto* s = std::get_if<MemoryTraffic>(&probe);
        s != nullptr && s->stream == StreamClass::kOptimizer) {
      for (float& v : prepared->buffers[2]) v = std::abs(v);
    }
    prepared->scratch.resize(static_cast<size_t>(sizes.scratch));
    prepared_.push_back(std::move(prepared));
    const int id = static_cast<int>(prepared_.size()) - 1;
    run(id);
    return id;
  }

  Sample time(int id, int64_t runs) override {
    peers_.barrier();
    const double begin = now();
    for (int64_t i = 0; i < runs; ++i) run(id);
    return {.seconds = peers_.most((now() - begin) / static_cast<double>(runs))};
  }

  void run(int id) override {
    Prepared& p = *prepared_[static_cast<size_t>(id)];
    std::visit(RunOn{p, peers_}, p.probe);
    p.next = (p.next + 1) % p.copies;
  }

  void finish() override { peers_.barrier(); }
  void release(int id) override { prepared_[static_cast<size_t>(id)].reset(); }
  void recover() override {}

 private:
  static void check(const Probe& probe) {
    if (const auto* g = std::get_if<GemmShape>(&probe)) check_product(g->pass);
    if (const auto* a = std::get_if<AttentionShape>(&probe)) check_attention(a->pass);
    if (std::holds_alternative<MemoryTraffic>(probe)) check_streams();
  }

  Peers& peers_;
  DeviceFacts facts_;
  std::vector<std::unique_ptr<Prepared>> prepared_;
};

}  // namespace

std::unique_ptr<Backend> make_host_backend(Peers& peers) {
  return std::make_unique<HostBackend>(peers);
}

}  // namespace herdsim
