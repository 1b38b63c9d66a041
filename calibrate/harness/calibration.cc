#include "calibrate/harness/calibration.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <stdexcept>
#include <variant>

#include "calibrate/harness/benchmark_series.h"
#include "calibrate/profile/collective_time.h"

namespace herdsim {
namespace {

constexpr std::array<std::string_view, 4> kTypes = {"bf16", "fp8", "fp16", "fp32"};
constexpr std::array<std::string_view, 3> kPasses = {"forward", "dgrad", "wgrad"};
constexpr std::array<std::string_view, 3> kStreams = {"fused", "framework", "optimizer"};

struct KeyOf {
  std::string operator()(const GemmShape& g) const {
    return fmt::format("gemm {} {} {} {} {}", kTypes[static_cast<size_t>(g.dtype)],
                       kPasses[static_cast<size_t>(g.pass)], g.m, g.n, g.k) +
           (g.groups > 1 ? fmt::format(" groups {}", g.groups) : "");
  }
  std::string operator()(const AttentionShape& a) const {
    return fmt::format("attention {} {} {} {} {} {} {} {}",
                       a.pass == AttentionPass::kForward ? "forward" : "backward",
                       a.mask_fraction < 1 ? "causal" : "full", a.batch, a.query_tokens,
                       a.kv_tokens, a.heads, a.kv_heads, a.head_dim) +
           (a.value_head_dim > 0 && a.value_head_dim != a.head_dim
                ? fmt::format(" values {}", a.value_head_dim)
                : "") +
           (a.mask_fraction < 0.5 ? fmt::format(" of {:.4g}", a.mask_fraction) : "");
  }
  std::string operator()(const MemoryTraffic& s) const {
    return fmt::format("stream {} {}", kStreams[static_cast<size_t>(s.stream)], s.moved.count());
  }
  std::string operator()(const CollectiveProbe& c) const {
    return fmt::format("collective {} {}", c.kind, c.bytes.count()) +
           (c.ranks > 0 ? fmt::format(" of {}", c.ranks) : "");
  }
  std::string operator()(const CopyProbe& c) const {
    return fmt::format("copy {} {}", c.to_device ? "to_device" : "to_host", c.bytes.count());
  }
  std::string operator()(const PeerCopyProbe& c) const {
    return fmt::format("peer_copy {} {}", c.both_ways ? "both_ways" : "one_way", c.bytes.count());
  }
  std::string operator()(const SharingProbe& s) const {
    return fmt::format("sharing {}{}{} {}", s.collective, s.collective.empty() ? "" : " ", s.sms,
                       (*this)(s.product));
  }
  std::string operator()(const LaunchProbe& /*launch*/) const { return "launch"; }
  std::string operator()(const PeakProbe& /*peak*/) const { return "peak"; }
};

// Of several ranks, each probe depends on how many there were.
std::string stored_key(const Backend& backend, const Probe& probe) {
  return fmt::format("{} ranks {} nodes {}", probe_key(probe), backend.ranks(), backend.nodes());
}

ProbeResult measure(Backend& backend, const CalibrationPlan& plan, const Probe& probe,
                    int prepared) {
  const double begin = plan.clock();
  backend.time(prepared, 1);
  const double once = backend.time(prepared, 1).seconds;
  const double repeats = once > 0 ? plan.rule.least_seconds_a_sample / once : 1000;
  const auto runs = static_cast<int64_t>(std::clamp(std::ceil(repeats), 1.0, 1e6));
  const std::string name = probe_key(probe);
  const ProbeWork work = work_of(probe, backend.ranks());
  const double sampling_begins = plan.clock();
  double seconds_a_sample = std::max(once * static_cast<double>(runs), 1e-9);
  ProbeResult result{.probe = probe};
  std::vector<Sample> samples;
  while (true) {
    const double spent = plan.clock() - begin;
    const StopReason reason = stop_reason(result.summary, spent, plan.rule);
    const int64_t wanted = reason == StopReason::kGoOn
                               ? next_batch(result.summary, spent, seconds_a_sample, plan.rule)
                               : 0;
    // Clocks differ between ranks, the device's as well: the leader says when all stop.
    const auto batch = static_cast<int64_t>(backend.agree(static_cast<double>(wanted)));
    if (batch == 0) {
      result.stopped = stop_reason_text(reason, result.summary.slowdown);
      break;
    }
    const SampleBatch taken =
        time_by_benchmark(name, work, batch, [&] { return backend.time(prepared, runs); });
    samples.insert(samples.end(), taken.samples.begin(), taken.samples.end());
    result.summary = summarize(samples);
    result.flops_per_second = taken.flops_per_second;
    result.bytes_per_second = taken.bytes_per_second;
    seconds_a_sample =
        std::max((plan.clock() - sampling_begins) / static_cast<double>(samples.size()), 1e-9);
  }
  backend.release(prepared);
  return result;
}

// The device can do nothing any more.
struct DeviceLost : std::runtime_error {
  using std::runtime_error::runtime_error;
};

void recover(Backend& backend, const std::string& fault) {
  try {
    backend.recover();
  } catch (const std::runtime_error& error) {
    throw DeviceLost(fault + "; " + error.what());
  }
}

// The result, or why there is none. Throws: DeviceLost; with several processes what time() throws.
std::variant<ProbeResult, std::string> try_to_measure(Backend& backend, const CalibrationPlan& plan,
                                                      const Probe& probe) {
  std::optional<int> prepared;
  std::string fault;
  try {
    prepared = backend.prepare(probe);
  } catch (const std::runtime_error& error) {
    fault = error.what();
  }
  if (!backend.all(prepared.has_value())) {
    if (prepared) backend.release(*prepared);
    if (fault.empty()) fault = "failed on another rank";
    recover(backend, fault);
    return fault;
  }
  if (!backend.alone()) return measure(backend, plan, probe, *prepared);
  try {
    return measure(backend, plan, probe, *prepared);
  } catch (const std::runtime_error& error) {
    fault = error.what();
    backend.release(*prepared);
    recover(backend, fault);
    return fault;
  }
}

// The leader alone reads the file.
std::optional<ProbeResult> kept(Backend& backend, const CalibrationPlan& plan, const Probe& probe) {
  std::optional<StoredMeasurement> found;
  if (plan.store != nullptr) found = plan.store->find(stored_key(backend, probe));
  const double seconds = backend.agree(found ? found->summary.seconds : 0);
  if (seconds <= 0) return std::nullopt;
  ProbeResult result{.probe = probe, .kept = true};
  if (found) {
    result.summary = found->summary;
    result.stopped = found->stopped;
  }
  result.summary.seconds = seconds;
  return result;
}

// Powers of two, as layers are split, in the full grid; and all.
std::vector<int64_t> groups_of(int64_t ranks, bool quick) {
  std::vector<int64_t> groups;
  for (int64_t group = 2; !quick && group < ranks; group *= 2) groups.push_back(group);
  if (ranks > 1) groups.push_back(ranks);
  return groups;
}

std::vector<Probe> grid(const DeviceFacts& facts, int64_t ranks, double largest_flops,
                        Bytes largest_bytes, bool quick) {
  std::vector<Probe> probes = {LaunchProbe{}, PeakProbe{}};
  const std::vector<int64_t> sizes =
      quick ? std::vector<int64_t>{128, 512, 2048, 8192}
            : std::vector<int64_t>{64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};
  for (const int64_t m : sizes) {
    for (const int64_t n : sizes) {
      for (const int64_t k : sizes) {
        const GemmShape shape{.m = m, .n = n, .k = k, .dtype = DataType::kBf16};
        if (shape.flops().count() > largest_flops) continue;
        probes.emplace_back(shape);
        // Smaller ones are as fast in bf16.
        constexpr int64_t kLeastOfFp8 = 512;
        if (facts.has_fp8 && std::min({m, n, k}) >= kLeastOfFp8) {
          GemmShape narrow = shape;
          narrow.dtype = DataType::kFp8;
          probes.emplace_back(narrow);
        }
        if (m != n || n != k) continue;
        for (const GemmPass pass : {GemmPass::kDgrad, GemmPass::kWgrad}) {
          GemmShape gradient = shape;
          gradient.pass = pass;
          probes.emplace_back(gradient);
        }
      }
    }
  }
  for (int64_t tokens = 128; tokens <= 16384; tokens *= quick ? 4 : 2) {
    for (const int64_t head_dim : {64, 128}) {
      for (const bool causal : {true, false}) {
        for (const AttentionPass pass : {AttentionPass::kForward, AttentionPass::kBackward}) {
          const AttentionShape shape{.batch = 1,
                                     .query_tokens = tokens,
                                     .kv_tokens = tokens,
                                     .heads = 8 * ((facts.multiprocessors + 7) / 8),
                                     .kv_heads = 8,
                                     .head_dim = head_dim,
                                     .mask_fraction = causal ? 0.5 : 1.0,
                                     .pass = pass};
          if (shape.flops().count() <= largest_flops) probes.emplace_back(shape);
        }
      }
    }
  }
  const int64_t step = quick ? 16 : 4;
  for (int64_t bytes = 1 << 16; bytes <= largest_bytes.count(); bytes *= step) {
    for (size_t i = 0; i < kStreams.size(); ++i) {
      probes.emplace_back(MemoryTraffic{Bytes(bytes), static_cast<StreamClass>(i)});
    }
    for (const bool to_device : {true, false})
      probes.emplace_back(CopyProbe{to_device, Bytes(bytes)});
  }
  const Bytes largest_to_peer = std::min(largest_bytes, gibibytes(1));
  for (int64_t bytes = 1 << 10; bytes <= largest_to_peer.count(); bytes *= step) {
    for (const bool both_ways : {false, true})
      probes.emplace_back(PeerCopyProbe{Bytes(bytes), both_ways});
  }
  // Products of several waves of tiles; alone they are above.
  constexpr int64_t kSeveralWaves = 2048;
  for (const int64_t size : sizes) {
    const GemmShape product{.m = size, .n = size, .k = size, .dtype = DataType::kBf16};
    if (size < kSeveralWaves || product.flops().count() > largest_flops) continue;
    for (int64_t sms = 8; sms <= 32 && 2 * sms < facts.multiprocessors; sms += 8) {
      probes.emplace_back(SharingProbe{product, sms});
      if (ranks == 1) continue;
      for (const std::string_view kind : {"all_gather", "reduce_scatter", "all_reduce"}) {
        probes.emplace_back(SharingProbe{product, sms, std::string(kind)});
      }
    }
  }
  for (const int64_t group : groups_of(ranks, quick)) {
    for (const std::string_view kind : kCollectiveCurveKinds) {
      for (int64_t bytes = 1024; bytes <= largest_bytes.count(); bytes *= step / 2) {
        probes.emplace_back(
            CollectiveProbe{std::string(kind), Bytes(bytes), group < ranks ? group : 0});
      }
    }
  }
  return probes;
}

}  // namespace

std::string probe_key(const Probe& probe) { return std::visit(KeyOf{}, probe); }

std::vector<Probe> in_turn(const std::vector<Probe>& probes) {
  std::array<std::vector<const Probe*>, std::variant_size_v<Probe>> kinds;
  for (const Probe& probe : probes) kinds[probe.index()].push_back(&probe);
  std::vector<Probe> ordered;
  for (size_t turn = 0; ordered.size() < probes.size(); ++turn) {
    for (const auto& kind : kinds) {
      if (turn < kind.size()) ordered.push_back(*kind[turn]);
    }
  }
  return ordered;
}

CalibrationResult calibrate(Backend& backend, const CalibrationPlan& plan) {
  CalibrationResult out;
  const double begin = plan.clock();
  size_t measured = 0;
  for (size_t i = 0; i < plan.probes.size(); ++i) {
    const Probe& probe = plan.probes[i];
    if (std::string reason = backend.why_not(probe); !reason.empty()) {
      out.refused.push_back({probe_key(probe), reason});
      continue;
    }
    const std::string key = stored_key(backend, probe);
    if (backend.agree(plan.store != nullptr && plan.store->was_lost_at(key) ? 1 : 0) > 0) {
      out.refused.push_back({probe_key(probe), "an earlier call lost the device at it"});
      continue;
    }
    std::optional<ProbeResult> result = kept(backend, plan, probe);
    if (!result && backend.agree(plan.clock() - begin) >= plan.most_seconds) {
      ++out.left;
      continue;
    }
    if (!result) {
      std::variant<ProbeResult, std::string> outcome;
      try {
        outcome = try_to_measure(backend, plan, probe);
      } catch (const DeviceLost&) {
        if (plan.store != nullptr) plan.store->put_lost_at(key);
        throw;
      }
      if (const auto* fault = std::get_if<std::string>(&outcome)) {
        out.failed.push_back({probe_key(probe), *fault});
        continue;
      }
      result = std::move(std::get<ProbeResult>(outcome));
      ++measured;
      if (plan.store != nullptr) plan.store->put({key, result->summary, result->stopped});
    }
    out.results.push_back(std::move(*result));
    if (!plan.on_progress) continue;
    const double spent = plan.clock() - begin;
    const double pace = measured > 0 ? spent / static_cast<double>(measured) : 0;
    plan.on_progress(
        {.done = i + 1,
         .probes = plan.probes.size(),
         .seconds = spent,
         .seconds_left = std::min(pace * static_cast<double>(plan.probes.size() - i - 1),
                                  std::max(plan.most_seconds - spent, 0.0)),
         .probe = probe_key(probe),
         .flops_per_second = out.results.back().flops_per_second,
         .bytes_per_second = out.results.back().bytes_per_second});
  }
  return out;
}

std::vector<Probe> default_probes(const DeviceFacts& facts, int64_t ranks, double largest_flops,
                                  Bytes largest_bytes, bool quick) {
  std::vector<Probe> probes = in_turn(grid(facts, ranks, largest_flops, largest_bytes, true));
  if (quick) return probes;
  std::set<std::string> coarse;
  for (const Probe& probe : probes) coarse.insert(probe_key(probe));
  std::vector<Probe> fine;
  for (const Probe& probe : grid(facts, ranks, largest_flops, largest_bytes, false)) {
    if (!coarse.contains(probe_key(probe))) fine.push_back(probe);
  }
  for (Probe& probe : in_turn(fine)) probes.push_back(std::move(probe));
  return probes;
}

}  // namespace herdsim
