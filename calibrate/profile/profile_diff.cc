#include "calibrate/profile/profile_diff.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include "calibrate/profile/profile_check.h"

namespace herdsim {
namespace {

constexpr std::array<std::string_view, 4> kTypes = {"bf16", "fp8", "fp16", "fp32"};
constexpr std::array<std::string_view, kStreamClasses> kStreams = {"fused", "framework",
                                                                   "optimizer"};

class Differ {
 public:
  void number(const std::string& field, double first, double second) {
    if (first == second) return;
    const double ratio = first != 0 ? second / first : 0;
    out_.push_back({field, fmt::format("{:.6g} and {:.6g}", first, second), ratio});
  }

  void words(const std::string& field, const std::string& first, const std::string& second) {
    if (first != second) out_.push_back({field, fmt::format("\"{}\" and \"{}\"", first, second)});
  }

  void provenance(const std::string& field, const Provenance& first, const Provenance& second) {
    words(field + " evidence", std::string(evidence_name(first.evidence)),
          std::string(evidence_name(second.evidence)));
    words(field + " source", first.source, second.source);
  }

  // Ratios second / first of one curve.
  void ratios(const std::string& field, std::vector<double> ratios) {
    if (std::all_of(ratios.begin(), ratios.end(), [](double r) { return r == 1.0; })) return;
    std::sort(ratios.begin(), ratios.end());
    const double low = ratios.front(), high = ratios.back();
    out_.push_back(
        {field,
         fmt::format("ratio {:.4f} to {:.4f}, median {:.4f}", low, high, ratios[ratios.size() / 2]),
         std::abs(std::log(low)) > std::abs(std::log(high)) ? low : high});
  }

  void curve(const std::string& field, const LogCurve& first, const LogCurve& second) {
    if (first.empty() || second.empty()) {
      if (first.empty() != second.empty()) only(field, second.empty());
      return;
    }
    std::vector<double> all;
    for (const LogCurve* c : {&first, &second}) {
      for (const LogCurve::Point& p : c->points()) all.push_back(second.at(p.x) / first.at(p.x));
    }
    ratios(field, std::move(all));
  }

  void only(const std::string& field, bool in_first) {
    out_.push_back({field, in_first ? "only in the first" : "only in the second"});
  }

  std::vector<ProfileDifference> result() && { return std::move(out_); }

 private:
  std::vector<ProfileDifference> out_;
};

// Calls same(a, b) for what has a counterpart and differ.only(name) for what has none.
template <class List, class Key, class Same>
void match(Differ& differ, const List& first, const List& second, Key key, Same same) {
  for (const auto& a : first) {
    const auto b =
        std::find_if(second.begin(), second.end(), [&](const auto& x) { return key(x) == key(a); });
    if (b == second.end()) {
      differ.only(key(a), true);
    } else {
      same(a, *b);
    }
  }
  for (const auto& b : second) {
    if (std::none_of(first.begin(), first.end(), [&](const auto& x) { return key(x) == key(b); })) {
      differ.only(key(b), false);
    }
  }
}

void diff_device(Differ& differ, const DeviceProfile& first, const DeviceProfile& second) {
  differ.words("name", first.name, second.name);
  differ.words("device.model", first.device, second.device);
  differ.number("device.hbm_bytes", static_cast<double>(first.hbm.count()),
                static_cast<double>(second.hbm.count()));
  differ.number("device.hbm_gigabytes_per_second", first.hbm_bandwidth.gigabytes_per_second(),
                second.hbm_bandwidth.gigabytes_per_second());
  differ.number("device.sms", static_cast<double>(first.sms), static_cast<double>(second.sms));
  differ.number("device.board_watts", first.board_watts, second.board_watts);
  for (size_t i = 0; i < kTypes.size(); ++i) {
    differ.number(fmt::format("device.{}_teraflops", kTypes[i]), first.peak[i].teraflops(),
                  second.peak[i].teraflops());
  }
  differ.provenance("device", first.device_provenance, second.device_provenance);
  differ.number("launch.floor_microseconds", first.launch_floor.seconds() * 1e6,
                second.launch_floor.seconds() * 1e6);
  differ.provenance("launch", first.launch_provenance, second.launch_provenance);
  differ.number("clock.training_factor", first.training_clock, second.training_clock);
  differ.provenance("clock", first.clock_provenance, second.clock_provenance);
  differ.number("sharing.sms_lost_per_transfer_sm", first.sms_lost_per_transfer_sm,
                second.sms_lost_per_transfer_sm);
  differ.provenance("sharing", first.sharing_provenance, second.sharing_provenance);
}

std::string gemm_name(const GemmSurface& s) {
  return fmt::format("gemm[{}]", kTypes[static_cast<size_t>(s.dtype)]);
}

std::vector<double> numbers_of(const GemmTiles& tiles) {
  std::vector<double> all = {tiles.slicing_nanoseconds, tiles.partial_sum_bytes_per_second,
                             tiles.memory_bytes_per_second, tiles.scale_nanoseconds,
                             tiles.exponent};
  for (const GemmTile& t : tiles.tiles) {
    all.insert(all.end(), {static_cast<double>(t.rows), static_cast<double>(t.columns),
                           t.start_nanoseconds, t.nanoseconds_per_k});
  }
  for (const int64_t slices : tiles.slices) all.push_back(static_cast<double>(slices));
  return all;
}

void diff_tiles(Differ& differ, const std::string& name, const GemmTiles& a, const GemmTiles& b) {
  if (a.empty() && b.empty()) return;
  if (a.tiles.size() != b.tiles.size() || a.slices.size() != b.slices.size()) {
    differ.number(name, static_cast<double>(a.tiles.size()), static_cast<double>(b.tiles.size()));
    differ.number(name + " slices", static_cast<double>(a.slices.size()),
                  static_cast<double>(b.slices.size()));
    return;
  }
  const std::vector<double> first = numbers_of(a);
  std::vector<double> ratios = numbers_of(b);
  for (size_t i = 0; i < ratios.size(); ++i) ratios[i] /= first[i];
  differ.ratios(name, std::move(ratios));
  differ.provenance(name, a.provenance, b.provenance);
}

void diff_gemm(Differ& differ, const GemmSurface& a, const GemmSurface& b) {
  const std::string name = gemm_name(a);
  std::vector<double> ratios;
  for (const GemmSurface* s : {&a, &b}) {
    const auto& axes = s->nanoseconds.axes();
    for (const double m : axes[0].nodes()) {
      for (const double n : axes[1].nodes()) {
        for (const double k : axes[2].nodes())
          ratios.push_back(b.nanoseconds.at(m, n, k) / a.nanoseconds.at(m, n, k));
      }
    }
  }
  differ.ratios(name, std::move(ratios));
  differ.curve(name + " sustained", a.sustained, b.sustained);
  differ.number(name + " row_step", static_cast<double>(a.row_step),
                static_cast<double>(b.row_step));
  differ.number(name + " row_step_until", static_cast<double>(a.row_step_until),
                static_cast<double>(b.row_step_until));
  diff_tiles(differ, name + " tiles", a.tiles, b.tiles);
  differ.number(name + " dgrad_rate", a.dgrad_rate, b.dgrad_rate);
  differ.number(name + " wgrad_rate", a.wgrad_rate, b.wgrad_rate);
  differ.provenance(name, a.provenance, b.provenance);
  differ.provenance(name + " layout", a.layout_provenance, b.layout_provenance);
}

std::string kernel_name(const AttentionKernel& k) { return fmt::format("attention[{}]", k.name); }

void diff_attention(Differ& differ, const AttentionKernel& a, const AttentionKernel& b) {
  const std::string kernel = kernel_name(a);
  differ.curve(kernel + " fill", a.fill, b.fill);
  differ.provenance(kernel + " fill", a.fill_provenance, b.fill_provenance);
  differ.number(kernel + " floor_microseconds", a.floor.seconds() * 1e6, b.floor.seconds() * 1e6);
  const auto name = [&](const AttentionCurve& c) {
    return fmt::format("{} {} {} {}", kernel,
                       c.pass == AttentionPass::kForward ? "forward" : "backward",
                       c.causal ? "causal" : "full", c.head_dim);
  };
  match(differ, a.curves, b.curves, name, [&](const AttentionCurve& x, const AttentionCurve& y) {
    differ.curve(name(x), x.teraflops, y.teraflops);
    differ.number(name(x) + " tile_rows", static_cast<double>(x.tile_rows),
                  static_cast<double>(y.tile_rows));
    differ.number(name(x) + " tile_keys", static_cast<double>(x.tile_keys),
                  static_cast<double>(y.tile_keys));
    differ.number(name(x) + " wave_exponent", x.wave_exponent, y.wave_exponent);
    differ.number(name(x) + " measured_from", static_cast<double>(x.measured_from),
                  static_cast<double>(y.measured_from));
    differ.number(name(x) + " measured_to", static_cast<double>(x.measured_to),
                  static_cast<double>(y.measured_to));
    differ.provenance(name(x), x.provenance, y.provenance);
  });
}

void diff_stream(Differ& differ, const std::string& name, const StreamCurve& a,
                 const StreamCurve& b) {
  differ.curve(name, a.bytes_per_second, b.bytes_per_second);
  if (a.bytes_per_second.empty() || b.bytes_per_second.empty()) return;
  differ.provenance(name, a.provenance, b.provenance);
}

std::string collective_name(const CollectiveCurve& c) {
  return fmt::format("collective[{}, {} ranks, {} nodes]", c.kind, c.ranks, c.nodes);
}

void diff_collective(Differ& differ, const CollectiveCurve& a, const CollectiveCurve& b) {
  std::vector<double> ratios;
  for (const CollectiveCurve* c : {&a, &b}) {
    for (const auto& p : c->points)
      ratios.push_back(collective_seconds(b, p.size) / collective_seconds(a, p.size));
  }
  differ.ratios(collective_name(a), std::move(ratios));
  differ.provenance(collective_name(a), a.provenance, b.provenance);
}

}  // namespace

std::vector<ProfileDifference> diff_profiles(const DeviceProfile& first,
                                             const DeviceProfile& second) {
  Differ differ;
  diff_device(differ, first, second);
  match(differ, first.gemm, second.gemm, gemm_name,
        [&](const GemmSurface& a, const GemmSurface& b) { diff_gemm(differ, a, b); });
  match(differ, first.attention, second.attention, kernel_name,
        [&](const AttentionKernel& a, const AttentionKernel& b) { diff_attention(differ, a, b); });
  for (size_t i = 0; i < kStreamClasses; ++i)
    diff_stream(differ, fmt::format("stream[{}]", kStreams[i]), first.stream[i], second.stream[i]);
  diff_stream(differ, "host_to_device", first.host_copy[0], second.host_copy[0]);
  diff_stream(differ, "device_to_host", first.host_copy[1], second.host_copy[1]);
  diff_stream(differ, "peer_copy", first.peer_copy[0], second.peer_copy[0]);
  diff_stream(differ, "peer_copy_both_ways", first.peer_copy[1], second.peer_copy[1]);
  match(differ, first.collectives, second.collectives, collective_name,
        [&](const CollectiveCurve& a, const CollectiveCurve& b) { diff_collective(differ, a, b); });
  return std::move(differ).result();
}

}  // namespace herdsim
