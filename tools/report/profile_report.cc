#include "tools/report/profile_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "calibrate/profile/profile_diff.h"
#include "sim/base/table.h"
#include "sim/base/text.h"
#include "sim/models/compute_time.h"

namespace herdsim {
namespace {

constexpr std::array<std::string_view, 4> kTypes = {"bf16", "fp8", "fp16", "fp32"};
constexpr std::array<std::string_view, kStreamClasses> kStreams = {"fused", "framework",
                                                                   "optimizer"};

// Range and rate as a reader wants them beside each other.
std::string teraflops_text(double value) { return fmt::format("{:.0f}", value); }

std::string device_text(const DeviceProfile& p) {
  std::string peaks;
  for (size_t i = 0; i < kTypes.size(); ++i) {
    if (p.peak[i].per_second() <= 0) continue;
    peaks +=
        fmt::format("{}{} {:.1f}", peaks.empty() ? "" : ", ", kTypes[i], p.peak[i].teraflops());
  }
  TextTable table({{""}, {"", Align::kWrap}});
  table.add_row({"profile", p.name});
  table.add_row({"device", p.device});
  table.add_row({"memory", fmt::format("{} at {}", to_text(p.hbm), to_text(p.hbm_bandwidth))});
  table.add_row({"multiprocessors", count_text(p.sms)});
  table.add_row({"board power", fmt::format("{:.0f} W", p.board_watts)});
  table.add_row({"dense peak, TFLOP/s", peaks});
  table.add_row({"launch floor", to_text(p.launch_floor)});
  table.add_row({"clock in training", fmt::format("{:.2f} of the tables'", p.training_clock)});
  table.add_row({"beside transfers",
                 fmt::format("{:.4g} SMs lost to each SM of a transfer", p.sms_lost_per_transfer_sm)});
  return table.text();
}

// Square products: k as large as m and n, so that the table shows the rise with size and the fall
// under the power limit.
std::string gemm_text(const DeviceProfile& p) {
  std::vector<TextTable::Column> columns = {{"m = n = k"}};
  for (const GemmSurface& s : p.gemm) {
    const std::string_view type = kTypes[static_cast<size_t>(s.dtype)];
    columns.push_back({fmt::format("{} TFLOP/s", type), Align::kRight});
    columns.push_back({"of peak", Align::kRight});
  }
  TextTable table(std::move(columns));
  for (int64_t size = 512; size <= 16384; size *= 2) {
    std::vector<std::string> cells = {count_text(size)};
    for (const GemmSurface& s : p.gemm) {
      const GemmShape shape{.m = size, .n = size, .k = size, .dtype = s.dtype};
      const KernelCost cost = gemm_cost(shape, p);
      cells.push_back(teraflops_text(shape.flops().count() / cost.time.seconds() * 1e-12));
      cells.push_back(to_text(cost.of_peak));
    }
    table.add_row(std::move(cells));
  }
  return table.text();
}

std::string attention_text(const DeviceProfile& p) {
  constexpr std::array<int64_t, 5> kTokens = {1024, 2048, 4096, 8192, 16384};
  std::vector<TextTable::Column> columns = {{"kernel"}, {"pass"}, {"mask"}, {"head"}};
  for (const int64_t tokens : kTokens)
    columns.push_back({fmt::format("{}k", tokens / 1024), Align::kRight});
  TextTable table(std::move(columns));
  for (size_t i = 0; i < p.attention.size(); ++i) {
    for (const AttentionCurve& curve : p.attention[AttentionKernelId(i)].curves) {
      std::vector<std::string> cells = {
          p.attention[AttentionKernelId(i)].name,
          curve.pass == AttentionPass::kForward ? "forward" : "backward",
          curve.causal ? "causal" : "full", count_text(curve.head_dim)};
      for (const int64_t tokens : kTokens) {
        const bool measured = tokens >= curve.measured_from && tokens <= curve.measured_to;
        cells.push_back(teraflops_text(curve.teraflops.at(static_cast<double>(tokens))) +
                        (measured ? "" : "*"));
      }
      table.add_row(std::move(cells));
    }
  }
  return table.text() + "* outside what was measured\n";
}

std::string stream_text(const DeviceProfile& p) {
  constexpr std::array<int64_t, 4> kMegabytes = {10, 100, 1000, 10000};
  std::vector<TextTable::Column> columns = {{"memory-bound kernels"}};
  for (const int64_t mb : kMegabytes) columns.push_back({to_text(megabytes(mb)), Align::kRight});
  TextTable table(std::move(columns));
  for (size_t i = 0; i < kStreamClasses; ++i) {
    std::vector<std::string> cells = {std::string(kStreams[i])};
    for (const int64_t mb : kMegabytes) {
      const KernelCost cost = stream_cost({megabytes(mb), static_cast<StreamClass>(i)}, p);
      const double rate = static_cast<double>(mb) * 1e6 / cost.time.seconds();
      cells.push_back(to_text(bytes_per_second(rate)) + (cost.extrapolated ? "*" : ""));
    }
    table.add_row(std::move(cells));
  }
  return table.text();
}

// Nothing where none were measured.
std::string peer_copy_text(const DeviceProfile& p) {
  if (p.peer_copy[0].bytes_per_second.empty() && p.peer_copy[1].bytes_per_second.empty()) return "";
  constexpr std::array<std::string_view, 2> kDirections = {"one way", "each way of both"};
  std::vector<TextTable::Column> columns = {{"copies to a peer"}};
  const std::array<Bytes, 4> sizes = {kibibytes(64), mebibytes(1), mebibytes(16), mebibytes(256)};
  for (const Bytes size : sizes) columns.push_back({to_text(size), Align::kRight});
  TextTable table(std::move(columns));
  for (size_t i = 0; i < kDirections.size(); ++i) {
    if (p.peer_copy[i].bytes_per_second.empty()) continue;
    std::vector<std::string> cells = {std::string(kDirections[i])};
    for (const Bytes size : sizes) {
      const KernelCost cost = peer_copy_cost(size, static_cast<PeerDirection>(i), p);
      const double rate = static_cast<double>(size.count()) / cost.time.seconds();
      cells.push_back(to_text(bytes_per_second(rate)) + (cost.extrapolated ? "*" : ""));
    }
    table.add_row(std::move(cells));
  }
  return table.text() + "\n";
}

std::string collective_text(const DeviceProfile& p) {
  TextTable table({{"collective"},
                   {"ranks", Align::kRight},
                   {"nodes", Align::kRight},
                   {"sizes", Align::kRight},
                   {"shortest", Align::kRight},
                   {"bus at most", Align::kRight}});
  for (const CollectiveCurve& curve : p.collectives) {
    Bandwidth best;
    for (const auto& point : curve.points) best = std::max(best, point.bus_bandwidth);
    table.add_row({curve.kind, count_text(curve.ranks), count_text(curve.nodes),
                   fmt::format("{} to {}", to_text(curve.points.front().size),
                               to_text(curve.points.back().size)),
                   to_text(curve.points.front().time), to_text(best)});
  }
  return table.text();
}

// What comes from where, each source once with the curves it gave.
std::string source_text(const DeviceProfile& p) {
  std::vector<std::pair<Provenance, std::string>> sources;
  const auto add = [&](const Provenance& provenance, const std::string& what) {
    if (provenance.source.empty()) return;
    for (auto& [known, whats] : sources) {
      if (known.source != provenance.source || known.evidence != provenance.evidence) continue;
      if (whats.find(what) == std::string::npos) whats += ", " + what;
      return;
    }
    sources.emplace_back(provenance, what);
  };
  add(p.device_provenance, "device");
  add(p.launch_provenance, "launch");
  add(p.clock_provenance, "clock in training");
  add(p.sharing_provenance, "beside transfers");
  for (const GemmSurface& s : p.gemm) {
    const std::string name = fmt::format("{} products", kTypes[static_cast<size_t>(s.dtype)]);
    add(s.provenance, name);
    add(s.layout_provenance, "gradient layouts");
  }
  for (size_t i = 0; i < p.attention.size(); ++i) {
    const AttentionKernel& kernel = p.attention[AttentionKernelId(i)];
    for (const AttentionCurve& c : kernel.curves) {
      add(c.provenance,
          kernel.name + (c.pass == AttentionPass::kForward ? " forward" : " backward"));
    }
    add(kernel.fill_provenance, kernel.name + " fill");
  }
  for (size_t i = 0; i < kStreamClasses; ++i)
    add(p.stream[i].provenance, fmt::format("{} streams", kStreams[i]));
  for (const StreamCurve& c : p.host_copy) add(c.provenance, "host copies");
  for (const StreamCurve& c : p.peer_copy) add(c.provenance, "peer copies");
  for (const CollectiveCurve& c : p.collectives)
    add(c.provenance, c.nodes > 1 ? "collectives across nodes" : "collectives");
  TextTable table({{"evidence"}, {"of"}, {"source", Align::kWrap}});
  for (const auto& [provenance, whats] : sources) {
    table.add_row({std::string(evidence_name(provenance.evidence)), whats, provenance.source});
  }
  return table.text();
}

std::string signed_percent(double share) { return fmt::format("{:+.1f} %", 100 * share); }

}  // namespace

std::string profile_show_text(const DeviceProfile& profile) {
  return device_text(profile) + "\n" + gemm_text(profile) +
         "\nAttention with every SM busy, TFLOP/s by tokens\n" + attention_text(profile) + "\n" +
         stream_text(profile) + "\n" + peer_copy_text(profile) + collective_text(profile) + "\n" + source_text(profile);
}

std::string profile_check_text(const DeviceProfile& profile, const ProfileCheck& check) {
  TextTable table({{profile.name + " against"},
                   {"rows", Align::kRight},
                   {"median error", Align::kRight},
                   {"p90", Align::kRight},
                   {"bias", Align::kRight}});
  for (const ErrorSummary& e : check.errors) {
    table.add_row({e.group, count_text(static_cast<int64_t>(e.count)),
                   fmt::format("{:.1f} %", 100 * e.median), fmt::format("{:.1f} %", 100 * e.p90),
                   signed_percent(e.bias)});
  }
  std::string out = table.text();
  if (check.extrapolated > 0) {
    out += fmt::format("{} rows lie outside what the profile was made from\n",
                       count_text(static_cast<int64_t>(check.extrapolated)));
  }
  for (const std::string& what : check.not_compared) {
    out += fmt::format("not compared: the profile has no {}\n", what);
  }
  return out;
}

std::string profile_diff_text(const DeviceProfile& first, const DeviceProfile& second) {
  const std::vector<ProfileDifference> differences = diff_profiles(first, second);
  if (differences.empty()) return "no differences\n";
  TextTable table({{"where"}, {fmt::format("{} and {}", first.name, second.name), Align::kWrap}});
  int64_t sources = 0;
  for (const ProfileDifference& d : differences) {
    if (d.field.ends_with(" source")) {
      ++sources;
    } else {
      table.add_row({d.field, d.detail});
    }
  }
  if (sources > 0)
    table.add_row({"sources", fmt::format("{} curves name another one", count_text(sources))});
  return table.text();
}

}  // namespace herdsim
