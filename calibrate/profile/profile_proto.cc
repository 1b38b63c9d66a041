#include "calibrate/profile/profile_proto.h"

#include <fmt/format.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>
#include <utility>

#include "calibrate/profile/collective_time.h"
#include "calibrate/profile/profile.pb.h"
#include "calibrate/profile/profile_place.h"
#include "sim/base/error.h"

namespace herdsim {
namespace {

namespace pb = google::protobuf;

std::vector<std::string> field_names(const pb::Descriptor& message) {
  std::vector<std::string> names;
  for (int i = 0; i < message.field_count(); ++i) names.push_back(message.field(i)->name());
  return names;
}

// Every field name of the format: the parser does not say which message it was in.
std::vector<std::string> all_field_names(const pb::FileDescriptor& file) {
  std::vector<std::string> names;
  for (int i = 0; i < file.message_type_count(); ++i) {
    for (std::string& name : field_names(*file.message_type(i))) names.push_back(std::move(name));
  }
  return names;
}

// Turns the parser's complaints into faults. Unknown fields arrive as warnings, so that parsing
// goes on to the next one.
class FaultCollector : public pb::io::ErrorCollector {
 public:
  FaultCollector(const std::string& file, Faults& faults) : file_(file), faults_(faults) {}
  void AddError(int line, pb::io::ColumnNumber column, const std::string& message) override {
    Fault fault{.file = file_, .line = line + 1, .column = column + 1, .problem = message};
    const std::string marker = "has no field named \"";
    if (const size_t at = message.find(marker); at != std::string::npos) {
      const size_t begin = at + marker.size();
      fault.field = message.substr(begin, message.find('"', begin) - begin);
      fault.problem = "unknown field";
      fault.nearest =
          nearest_name(fault.field, all_field_names(*profile::Profile::descriptor()->file()));
    }
    faults_.add(std::move(fault));
  }
  void AddWarning(int line, pb::io::ColumnNumber column, const std::string& message) override {
    AddError(line, column, message);
  }

 private:
  const std::string& file_;
  Faults& faults_;
};

void read_device(const profile::Device& device, const Place& place, DeviceProfile& out) {
  out.device = device.model();
  if (device.hbm_bytes() <= 0) place.fault("hbm_bytes", "is not positive", "above 0");
  out.hbm = Bytes(device.hbm_bytes());
  check_positive(place, "hbm_gigabytes_per_second", device.hbm_gigabytes_per_second());
  check_positive(place, "board_watts", device.board_watts());
  check_positive(place, "bf16_teraflops", device.bf16_teraflops());
  for (const auto& [field, value] :
       {std::pair<std::string, double>{"fp16_teraflops", device.fp16_teraflops()},
        {"fp8_teraflops", device.fp8_teraflops()},
        {"fp32_teraflops", device.fp32_teraflops()}}) {
    if (!(value >= 0) || !std::isfinite(value))
      place.fault(field, fmt::format("{} is negative", value), "0 or more");
  }
  constexpr int64_t kMostSms = 1'000'000;
  if (device.sms() <= 0 || device.sms() > kMostSms)
    place.fault("sms", fmt::format("{} is out of range", device.sms()), fmt::format("1 to {}", kMostSms));
  out.sms = device.sms();
  out.board_watts = device.board_watts();
  out.device_provenance = provenance(device.source(), place.child("source"));
  if (!place.ok()) return;
  out.hbm_bandwidth = bytes_per_second(device.hbm_gigabytes_per_second() * 1e9);
  out.peak = {teraflops(device.bf16_teraflops()), teraflops(device.fp8_teraflops()),
              teraflops(device.fp16_teraflops()), teraflops(device.fp32_teraflops())};
}

// Values positive and one a node, growing along every axis, below the device's peak.
// A peak of zero is not looked at.
void check_grid(const Place& place, const LogGrid3& grid, FlopRate peak) {
  const auto& m = grid.axes()[0].nodes();
  const auto& n = grid.axes()[1].nodes();
  const auto& k = grid.axes()[2].nodes();
  for (size_t i = 0; i < m.size(); ++i) {
    for (size_t j = 0; j < n.size(); ++j) {
      for (size_t l = 0; l < k.size(); ++l) {
        const double here = grid.value(i, j, l);
        const int index = static_cast<int>((i * n.size() + j) * k.size() + l);
        const std::string where = fmt::format("m = {}, n = {}, k = {}", m[i], n[j], k[l]);
        if (peak.per_second() > 0 && 2 * m[i] * n[j] * k[l] > here * 1e-9 * peak.per_second()) {
          place.fault("nanoseconds",
                      fmt::format("{} ns is faster than the device's peak at {}", here, where), "",
                      index);
        }
        const bool falls = (i > 0 && here < grid.value(i - 1, j, l)) ||
                           (j > 0 && here < grid.value(i, j - 1, l)) ||
                           (l > 0 && here < grid.value(i, j, l - 1));
        if (falls) {
          place.fault("nanoseconds",
                      fmt::format("{} ns is less than a smaller product takes, at {}", here, where),
                      "times that never fall as a size grows", index);
        }
      }
    }
  }
}

GemmSurface read_gemm(const profile::Gemm& gemm, const Place& place, const DeviceProfile& device) {
  GemmSurface out;
  out.dtype = static_cast<DataType>(gemm.dtype());
  out.provenance = provenance(gemm.source(), place.child("source"));
  if (gemm.has_layout_source()) {
    out.layout_provenance = provenance(gemm.layout_source(), place.child("layout_source"));
  }
  const std::vector<double> m = numbers(gemm.m()), n = numbers(gemm.n()), k = numbers(gemm.k());
  const bool axes =
      check_axis(place, "m", m) & check_axis(place, "n", n) & check_axis(place, "k", k);
  const size_t nodes = m.size() * n.size() * k.size();
  const std::vector<double> time = numbers(gemm.nanoseconds());
  if (check_values(place, "nanoseconds", time, nodes, 0, kNoLimit) && axes) {
    out.nanoseconds = LogGrid3({LogAxis(m), LogAxis(n), LogAxis(k)}, time);
    // Tiles multiply what the grid says.
    check_grid(place, out.nanoseconds, gemm.has_tiles() ? FlopRate() : device.peak_of(out.dtype));
  }
  if (gemm.sustained_at_nanoseconds_size() > 0 || gemm.sustained_factor_size() > 0) {
    const std::vector<double> factor = numbers(gemm.sustained_factor());
    out.sustained =
        curve(place, "sustained_at_nanoseconds", numbers(gemm.sustained_at_nanoseconds()),
              "sustained_factor", factor, 1.0, 10.0);
    check_sustained_time(place, out.sustained);
  }
  check_step(place, "row_step", gemm.row_step());
  if (gemm.row_step_until() < 0) place.fault("row_step_until", "is negative", "0 or more");
  if (gemm.row_step() >= 1 && gemm.row_step_until() % gemm.row_step() != 0) {
    // Otherwise the last rows below it would be rounded up beyond rows above it.
    place.fault("row_step_until",
                fmt::format("{} is no multiple of row_step", gemm.row_step_until()),
                fmt::format("a multiple of {}", gemm.row_step()));
  }
  out.row_step = gemm.row_step();
  out.row_step_until = gemm.row_step_until();
  if (gemm.has_tiles()) out.tiles = read_tiles(gemm.tiles(), place.child("tiles"));
  check_positive(place, "dgrad_rate", gemm.dgrad_rate());
  check_positive(place, "wgrad_rate", gemm.wgrad_rate());
  out.dgrad_rate = gemm.dgrad_rate();
  out.wgrad_rate = gemm.wgrad_rate();
  return out;
}

AttentionCurve read_attention_curve(const profile::AttentionCurve& in, const Place& place,
                                    const DeviceProfile& device) {
  AttentionCurve out{.pass = static_cast<AttentionPass>(in.pass()),
                     .causal = in.causal(),
                     .head_dim = in.head_dim()};
  if (in.head_dim() <= 0) place.fault("head_dim", "is not positive", "1 or more");
  // A device that is itself at fault has no peak to hold the curve to.
  const double peak = device.peak_of(DataType::kBf16).teraflops();
  out.teraflops = curve(place, "kv_tokens", numbers(in.kv_tokens()), "teraflops",
                        numbers(in.teraflops()), 0, peak > 0 ? peak : kNoLimit);
  check_time_grows(place, "teraflops", out.teraflops, 2.0);
  out.provenance = provenance(in.source(), place.child("source"));
  check_step(place, "tile_rows", in.tile_rows());
  check_step(place, "tile_keys", in.tile_keys());
  if (!(in.wave_exponent() >= 0 && in.wave_exponent() <= 1)) {
    place.fault("wave_exponent", fmt::format("{} is out of range", in.wave_exponent()), "0 to 1");
  }
  out.tile_rows = in.tile_rows();
  out.tile_keys = in.tile_keys();
  out.wave_exponent = in.wave_exponent();
  if (out.teraflops.empty()) return out;
  const auto first = static_cast<int64_t>(out.teraflops.points().front().x);
  const auto last = static_cast<int64_t>(out.teraflops.points().back().x);
  out.measured_from = in.has_measured_from() ? in.measured_from() : first;
  out.measured_to = in.has_measured_to() ? in.measured_to() : last;
  if (out.measured_from < first || out.measured_to > last || out.measured_from > out.measured_to) {
    place.fault(in.has_measured_from() ? "measured_from" : "measured_to",
                fmt::format("{} to {} is no part of the curve", out.measured_from, out.measured_to),
                fmt::format("within {} to {}", first, last));
  }
  return out;
}

AttentionKernel read_attention(const profile::Attention& in, const Place& place,
                               const DeviceProfile& device) {
  AttentionKernel out{.name = in.kernel()};
  bool forward = false, backward = false;
  std::set<std::tuple<int, bool, int64_t>> seen;
  for (int i = 0; i < in.curve_size(); ++i) {
    const profile::AttentionCurve& curve_in = in.curve(i);
    (curve_in.pass() == profile::AttentionCurve::FORWARD ? forward : backward) = true;
    if (!seen.insert({curve_in.pass(), curve_in.causal(), curve_in.head_dim()}).second) {
      place.fault("curve", "has the pass, mask and head dimension of another curve",
                  "one a combination", i);
    }
    out.curves.push_back(read_attention_curve(curve_in, place.child("curve", i), device));
  }
  if (!forward || !backward)
    place.fault("curve", "lacks a pass", "at least one forward and one backward curve");
  if (in.kernel().empty()) place.fault("kernel", "is empty");
  if (in.fill_at_tiles_per_sm_size() > 0 || in.fill_share_size() > 0) {
    out.fill = curve(place, "fill_at_tiles_per_sm", numbers(in.fill_at_tiles_per_sm()),
                     "fill_share", numbers(in.fill_share()), 0, 1.0);
    check_never_falls(place, "fill_share", numbers(in.fill_share()));
    check_time_grows(place, "fill_share", out.fill, 1.0);
    if (!in.has_fill_source())
      place.fault("fill_source", "is missing");
    else
      out.fill_provenance = provenance(in.fill_source(), place.child("fill_source"));
  }
  check_positive(place, "floor_microseconds", in.floor_microseconds());
  out.floor = seconds_rounded_up(in.floor_microseconds() * 1e-6);
  return out;
}

template <class Message>
StreamCurve read_stream(const Message& in, const Place& place) {
  StreamCurve out;
  std::vector<double> rate = numbers(in.gigabytes_per_second());
  for (double& r : rate) r *= 1e9;
  out.bytes_per_second = curve(place, "bytes", numbers(in.bytes()), "gigabytes_per_second", rate);
  check_time_grows(place, "gigabytes_per_second", out.bytes_per_second, 1.0);
  out.provenance = provenance(in.source(), place.child("source"));
  return out;
}

CollectiveCurve read_collective(const profile::Collective& in, const Place& place) {
  CollectiveCurve out{.kind = std::string(kCollectiveCurveKinds[static_cast<size_t>(in.kind())]),
                      .ranks = in.ranks(),
                      .nodes = in.nodes()};
  if (in.ranks() < 2)
    place.fault("ranks", fmt::format("{} ranks exchange nothing", in.ranks()), "2 or more");
  if (in.nodes() < 1 || in.nodes() > in.ranks()) {
    place.fault("nodes", fmt::format("{} nodes for {} ranks", in.nodes(), in.ranks()),
                "1 to ranks");
  }
  const std::vector<double> size = numbers(in.bytes()), time = numbers(in.microseconds());
  const bool axis = check_axis(place, "bytes", size);
  check_never_falls(place, "microseconds", time);
  if (check_values(place, "microseconds", time, size.size(), 0, kNoLimit) && axis &&
      in.ranks() >= 2) {
    for (size_t i = 0; i < size.size(); ++i) {
      out.points.push_back(collective_point(out.kind, in.ranks(),
                                            Bytes(in.bytes(static_cast<int>(i))),
                                            seconds_rounded_up(time[i] * 1e-6)));
    }
  }
  out.provenance = provenance(in.source(), place.child("source"));
  return out;
}

// The element of `list` that has the key of `value` replaced by it, or one more.
template <class List, class Value, class Same>
void put(List& list, Value value, Same same) {
  for (auto& element : list) {
    if (same(element)) {
      element = std::move(value);
      return;
    }
  }
  list.push_back(std::move(value));
}

void read_gemms(const profile::Profile& in, const Place& root, DeviceProfile& out) {
  std::set<int> seen;
  for (int i = 0; i < in.gemm_size(); ++i) {
    if (!seen.insert(in.gemm(i).dtype()).second)
      root.fault("gemm", "has the data type of another one", "one a type", i);
    const GemmSurface surface = read_gemm(in.gemm(i), root.child("gemm", i), out);
    put(out.gemm, surface, [&](const GemmSurface& s) { return s.dtype == surface.dtype; });
  }
  if (!in.has_base() && !seen.contains(profile::Gemm::BF16)) root.fault("gemm", "has no bf16 surface");
}

void read_attentions(const profile::Profile& in, const Place& root, DeviceProfile& out) {
  std::set<std::string> kernels;
  for (int i = 0; i < in.attention_size(); ++i) {
    if (!kernels.insert(in.attention(i).kernel()).second)
      root.fault("attention", "has the name of another one", "one a kernel", i);
    const AttentionKernel kernel = read_attention(in.attention(i), root.child("attention", i), out);
    put(out.attention, kernel, [&](const AttentionKernel& k) { return k.name == kernel.name; });
  }
}

void read_streams(const profile::Profile& in, const Place& root, DeviceProfile& out) {
  std::set<int> seen;
  for (int i = 0; i < in.stream_size(); ++i) {
    const profile::Stream& stream = in.stream(i);
    if (!seen.insert(stream.class_()).second)
      root.fault("stream", "has the class of another one", "one a class", i);
    out.stream[static_cast<size_t>(stream.class_())] = read_stream(stream, root.child("stream", i));
  }
  if (!in.has_base() && seen.size() != kStreamClasses)
    root.fault("stream", "lacks a class", "FUSED, FRAMEWORK and OPTIMIZER");
  if (!in.has_base() || in.has_host_to_device())
    out.host_copy[0] = read_stream(in.host_to_device(), root.child("host_to_device"));
  if (!in.has_base() || in.has_device_to_host())
    out.host_copy[1] = read_stream(in.device_to_host(), root.child("device_to_host"));
  if (in.has_peer_copy()) out.peer_copy[0] = read_stream(in.peer_copy(), root.child("peer_copy"));
  if (in.has_peer_copy_both_ways())
    out.peer_copy[1] = read_stream(in.peer_copy_both_ways(), root.child("peer_copy_both_ways"));
}

void read_collectives(const profile::Profile& in, const Place& root, DeviceProfile& out) {
  std::set<std::tuple<int, int64_t, int64_t>> groups;
  for (int i = 0; i < in.collective_size(); ++i) {
    const profile::Collective& c = in.collective(i);
    if (!groups.insert({c.kind(), c.ranks(), c.nodes()}).second) {
      root.fault("collective", "has the kind and group of another one", "one a group", i);
    }
    const CollectiveCurve curve = read_collective(c, root.child("collective", i));
    put(out.collectives, curve, [&](const CollectiveCurve& o) {
      return o.kind == curve.kind && o.ranks == curve.ranks && o.nodes == curve.nodes;
    });
  }
}

// Into `out`, which is empty or the base.
void read_profile(const profile::Profile& in, const Place& root, DeviceProfile& out) {
  out.name = in.name();
  const bool plain = !out.name.empty() && std::all_of(out.name.begin(), out.name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-';
  });
  if (!plain)
    root.fault("name", fmt::format("\"{}\" is no catalogue name", out.name),
               "lower case, digits and '-'");
  if (!in.has_base() || in.has_device()) read_device(in.device(), root.child("device"), out);
  if (!in.has_base() || in.has_launch()) {
    check_positive(root.child("launch"), "floor_microseconds", in.launch().floor_microseconds());
    out.launch_floor = seconds_rounded_up(in.launch().floor_microseconds() * 1e-6);
    out.launch_provenance = provenance(in.launch().source(), root.child("launch").child("source"));
  }
  if (in.has_clock()) {
    // As software.clock_factor; beyond, a step would do more than the device's peak.
    constexpr double kFastest = 2;
    const double factor = in.clock().training_factor();
    if (!is_positive(factor) || factor > kFastest) {
      root.child("clock").fault("training_factor", fmt::format("{} is out of range", factor),
                                fmt::format("above 0 up to {}", kFastest));
    }
    out.training_clock = in.clock().training_factor();
    out.clock_provenance = provenance(in.clock().source(), root.child("clock").child("source"));
  }
  if (in.has_sharing()) {
    const Place sharing = root.child("sharing");
    constexpr double kMost = 16;
    const double lost = in.sharing().sms_lost_per_transfer_sm();
    if (!(lost >= 0 && lost <= kMost)) {
      sharing.fault("sms_lost_per_transfer_sm", fmt::format("{} is out of range", lost),
                    fmt::format("0 to {}", kMost));
    }
    out.sms_lost_per_transfer_sm = lost;
    out.sharing_provenance = provenance(in.sharing().source(), sharing.child("source"));
  }
  read_gemms(in, root, out);
  read_attentions(in, root, out);
  read_streams(in, root, out);
  read_collectives(in, root, out);
}

}  // namespace

DeviceProfile profile_from_text(std::string_view text, const std::string& file,
                                const BaseLoader& load_base) {
  Faults faults;
  profile::Profile message;
  Place::Tree tree;
  FaultCollector collector(file, faults);
  pb::TextFormat::Parser parser;
  parser.RecordErrorsTo(&collector);
  parser.WriteLocationsTo(&tree);
  parser.AllowPartialMessage(true);
  parser.AllowUnknownField(true);
  pb::io::ArrayInputStream stream(text.data(), static_cast<int>(text.size()));
  const bool parsed = parser.Parse(&stream, &message);
  if (!parsed && faults.empty())
    faults.add({.file = file, .problem = "is not text-format protobuf"});
  const Place root(message, &tree, "", {0, 0}, file, faults);
  // After a syntax error what follows is missing for no other reason.
  if (parsed) root.check_required(!message.has_base());
  faults.throw_if_any();
  DeviceProfile profile;
  if (message.has_base()) profile = load_base(message.base());
  read_profile(message, root, profile);
  faults.throw_if_any();
  return profile;
}

}  // namespace herdsim
