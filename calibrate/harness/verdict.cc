#include "calibrate/harness/verdict.h"

#include <fmt/format.h>

#include <algorithm>

#include "calibrate/harness/probe_work.h"
#include "sim/base/table.h"
#include "sim/base/text.h"

namespace herdsim {
namespace {

// What a probe reached and what it can reach, in its unit.
struct Rate {
  double value = 0, bound = 0;
  std::string_view unit;
};

// Fp8 units are twice as wide as those of bf16, which everything else computes in or is labelled
// so.
FlopRate peak_for(const Probe& probe, const DeviceProfile& profile) {
  const auto* g = std::get_if<GemmShape>(&probe);
  const FlopRate own = g != nullptr ? profile.peak_of(g->dtype) : FlopRate();
  return own.per_second() > 0 ? own : profile.peak_of(DataType::kBf16);
}

// Of the link that the bytes pass; 0 where they pass none, or one that is not known.
double link_rate(const Probe& probe, const Backend& backend) {
  const DeviceFacts& facts = backend.facts();
  if (std::holds_alternative<CopyProbe>(probe)) return facts.host_rate;
  if (std::holds_alternative<PeerCopyProbe>(probe)) return facts.peer_rate;
  const auto* c = std::get_if<CollectiveProbe>(&probe);
  const bool in_node =
      c != nullptr && backend.nodes_of(c->ranks > 0 ? c->ranks : backend.ranks()) == 1;
  return in_node ? facts.peer_rate : 0;
}

Rate rate_of(const Probe& probe, const DeviceProfile& profile, const Backend& backend,
             double seconds) {
  const ProbeWork work = work_of(probe, backend.ranks());
  if (work.flops > 0) {
    return {work.flops / seconds * 1e-9, peak_for(probe, profile).per_second() * 1e-9, "GFLOP/s"};
  }
  if (work.bytes <= 0) return {};
  // Nothing passes faster than memory.
  const double link = link_rate(probe, backend) * 1e-9;
  return {work.bytes / seconds * 1e-9,
          link > 0 ? link : profile.hbm_bandwidth.gigabytes_per_second(), "GB/s"};
}

// Those of one kind that have one reason are a line.
std::string lines_of(const std::string& verb, const std::vector<NotMeasured>& probes) {
  std::vector<std::pair<const NotMeasured*, size_t>> lines;  // the first, and how many more
  const auto kind = [](const NotMeasured& n) { return n.probe.substr(0, n.probe.find(' ')); };
  for (const NotMeasured& n : probes) {
    const auto same = std::find_if(lines.begin(), lines.end(), [&](const auto& line) {
      return line.first->reason == n.reason && kind(*line.first) == kind(n);
    });
    if (same != lines.end()) {
      ++same->second;
    } else {
      lines.emplace_back(&n, 0);
    }
  }
  std::string text;
  for (const auto& [first, more] : lines) {
    text += fmt::format("{}: {}{}: {}\n", verb, first->probe,
                        more > 0 ? fmt::format(" and {} more", more) : "", first->reason);
  }
  return text;
}

}  // namespace

std::string verdict_table(const DeviceProfile& profile, const Backend& backend,
                          const CalibrationResult& calibration) {
  TextTable table({{"probe"},
                   {"time", Align::kRight},
                   {"rate", Align::kRight},
                   {"bound", Align::kRight},
                   {"of it", Align::kRight},
                   {"spread", Align::kRight},
                   {"samples", Align::kRight},
                   {"clock", Align::kRight},
                   {"power", Align::kRight},
                   {"stopped"}});
  for (const ProbeResult& r : calibration.results) {
    const Rate rate = rate_of(r.probe, profile, backend, r.summary.seconds);
    const bool has_rate = rate.bound > 0;
    table.add_row(
        {probe_key(r.probe), to_text(seconds_rounded_up(r.summary.seconds)),
         has_rate ? fmt::format("{:.4g} {}", rate.value, rate.unit) : "",
         has_rate ? fmt::format("{:.4g}", rate.bound) : "",
         has_rate ? fmt::format("{:.0f} %", 100 * rate.value / rate.bound) : "",
         fmt::format("{:.1f} %", 100 * r.summary.spread), fmt::format("{}", r.summary.samples),
         r.summary.clock_mhz > 0 ? fmt::format("{:.0f} MHz", r.summary.clock_mhz) : "",
         r.summary.watts > 0 ? fmt::format("{:.0f} W", r.summary.watts) : "",
         r.stopped + (r.kept ? ", kept" : "") +
             (r.summary.throttled > 0 ? fmt::format(", {} throttled", r.summary.throttled) : "")});
  }
  std::string text = table.text() + lines_of("not measured", calibration.refused) +
                     lines_of("failed", calibration.failed);
  const bool to_peer = std::any_of(
      calibration.results.begin(), calibration.results.end(),
      [](const ProbeResult& r) { return std::holds_alternative<PeerCopyProbe>(r.probe); });
  if (to_peer) text += fmt::format("copies to a peer went by {}\n", backend.facts().peer_link);
  return text;
}

}  // namespace herdsim
