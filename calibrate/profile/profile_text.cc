// The writer of profile files. Text is laid out by hand so that a surface reads as a table: one row
// of the grid a line.
#include <fmt/format.h>

#include <cctype>
#include <cmath>
#include <iterator>

#include "calibrate/profile/profile_file.h"
#include "sim/models/data_type_names.h"

namespace herdsim {
namespace {

constexpr size_t kLineWidth = 118;
constexpr std::array<std::string_view, 3> kStreamNames = {"FUSED", "FRAMEWORK", "OPTIMIZER"};

// Five significant digits without an exponent, the shortest such text.
std::string number(double v) {
  if (v == std::floor(v) && std::abs(v) < 1e15) return fmt::format("{:.0f}", v);
  const int digits = v == 0 ? 0 : static_cast<int>(std::floor(std::log10(std::abs(v)))) + 1;
  std::string text = fmt::format("{:.{}f}", v, std::max(0, 5 - digits));
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text;
}

// Four significant digits: more mean nothing in a measurement.
double rounded(double v) {
  if (v == 0) return 0;
  const double scale = std::pow(10.0, 3 - std::floor(std::log10(std::abs(v))));
  return std::round(v * scale) / scale;
}

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    if (c == '\n') {
      out += "\\n";
    } else {
      out += c;
    }
  }
  return out + '"';
}

std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

class Writer {
 public:
  void open(std::string_view name) {
    line(fmt::format("{} {{", name));
    ++depth_;
  }
  void close() {
    --depth_;
    line("}");
  }
  void field(std::string_view name, std::string_view value) {
    line(fmt::format("{}: {}", name, value));
  }
  void field(std::string_view name, double value) { field(name, number(value)); }
  void source(const Provenance& p, std::string_view name = "source") {
    line(fmt::format("{} {{ evidence: {} text: {} }}", name, upper(evidence_name(p.evidence)),
                     quoted(p.source)));
  }
  // `row` > 0 starts a line every `row` numbers, so that a grid reads as a table.
  void list(std::string_view name, const std::vector<double>& values, size_t row = 0) {
    if (values.empty()) return;
    const std::string indent(2 * depth_, ' ');
    std::string text = fmt::format("{}{}: [", indent, name);
    size_t width = text.size();
    for (size_t i = 0; i < values.size(); ++i) {
      const std::string item = number(values[i]) + (i + 1 < values.size() ? "," : "");
      const bool new_row = row > 0 ? i % row == 0 : width + item.size() + 1 > kLineWidth;
      if (new_row) {
        text += "\n" + indent + " ";
        width = indent.size() + 1;
      }
      text += (text.back() == '[' ? "" : " ") + item;
      width += item.size() + 1;
    }
    out_ += text + "]\n";
  }
  void line(std::string_view text) {
    out_ += std::string(2 * depth_, ' ') + std::string(text) + "\n";
  }
  std::string text() && { return std::move(out_); }

 private:
  std::string out_;
  size_t depth_ = 0;
};

std::vector<double> x_of(const LogCurve& curve) {
  std::vector<double> x;
  for (const auto& p : curve.points()) x.push_back(p.x);
  return x;
}

std::vector<double> y_of(const LogCurve& curve, double unit = 1.0) {
  std::vector<double> y;
  for (const auto& p : curve.points()) y.push_back(rounded(p.y / unit));
  return y;
}

void write_device(Writer& out, const DeviceProfile& p) {
  out.open("device");
  out.field("model", quoted(p.device));
  out.field("hbm_bytes", static_cast<double>(p.hbm.count()));
  out.field("hbm_gigabytes_per_second", p.hbm_bandwidth.gigabytes_per_second());
  out.field("sms", static_cast<double>(p.sms));
  out.field("board_watts", p.board_watts);
  constexpr std::array<std::string_view, 4> kFields = {"bf16_teraflops", "fp8_teraflops",
                                                       "fp16_teraflops", "fp32_teraflops"};
  for (size_t i = 0; i < kFields.size(); ++i) {
    if (p.peak[i].per_second() > 0) out.field(kFields[i], p.peak[i].teraflops());
  }
  out.source(p.device_provenance);
  out.close();
  out.open("launch");
  out.field("floor_microseconds", p.launch_floor.seconds() * 1e6);
  out.source(p.launch_provenance);
  out.close();
  if (p.training_clock != 1) {
    out.open("clock");
    out.field("training_factor", p.training_clock);
    out.source(p.clock_provenance);
    out.close();
  }
  if (!p.sharing_provenance.source.empty()) {
    out.open("sharing");
    out.field("sms_lost_per_transfer_sm", p.sms_lost_per_transfer_sm);
    out.source(p.sharing_provenance);
    out.close();
  }
}

void write_tiles(Writer& out, const GemmTiles& tiles) {
  out.open("tiles");
  for (const GemmTile& tile : tiles.tiles) {
    out.line(fmt::format(
        "tile {{ rows: {} columns: {} start_nanoseconds: {} nanoseconds_per_k: {} }}", tile.rows,
        tile.columns, number(tile.start_nanoseconds), number(tile.nanoseconds_per_k)));
  }
  out.list("slices", {tiles.slices.begin(), tiles.slices.end()});
  out.field("slicing_nanoseconds", tiles.slicing_nanoseconds);
  out.field("partial_sum_gigabytes_per_second", tiles.partial_sum_bytes_per_second * 1e-9);
  out.field("memory_gigabytes_per_second", tiles.memory_bytes_per_second * 1e-9);
  out.field("scale_nanoseconds", tiles.scale_nanoseconds);
  out.field("exponent", tiles.exponent);
  out.source(tiles.provenance);
  out.close();
}

void write_gemm(Writer& out, const GemmSurface& surface) {
  out.open("gemm");
  out.field("dtype", data_type_name(surface.dtype));
  out.source(surface.provenance);
  const auto& axes = surface.nanoseconds.axes();
  out.list("m", axes[0].nodes());
  out.list("n", axes[1].nodes());
  out.list("k", axes[2].nodes());
  std::vector<double> time = surface.nanoseconds.values();
  for (double& t : time) t = rounded(t);
  out.list("nanoseconds", time, axes[2].size());
  if (surface.row_step > 1) {
    out.field("row_step", static_cast<double>(surface.row_step));
    out.field("row_step_until", static_cast<double>(surface.row_step_until));
  }
  if (!surface.sustained.empty()) {
    out.list("sustained_at_nanoseconds", x_of(surface.sustained));
    out.list("sustained_factor", y_of(surface.sustained));
  }
  out.field("dgrad_rate", surface.dgrad_rate);
  out.field("wgrad_rate", surface.wgrad_rate);
  if (!surface.layout_provenance.source.empty())
    out.source(surface.layout_provenance, "layout_source");
  if (!surface.tiles.empty()) write_tiles(out, surface.tiles);
  out.close();
}

void write_attention(Writer& out, const AttentionKernel& kernel) {
  out.open("attention");
  out.field("kernel", quoted(kernel.name));
  for (const AttentionCurve& curve : kernel.curves) {
    out.open("curve");
    out.field("pass", curve.pass == AttentionPass::kForward ? "FORWARD" : "BACKWARD");
    out.field("causal", curve.causal ? "true" : "false");
    out.field("head_dim", static_cast<double>(curve.head_dim));
    out.list("kv_tokens", x_of(curve.teraflops));
    out.list("teraflops", y_of(curve.teraflops));
    out.field("tile_rows", static_cast<double>(curve.tile_rows));
    out.field("tile_keys", static_cast<double>(curve.tile_keys));
    if (curve.wave_exponent > 0) out.field("wave_exponent", rounded(curve.wave_exponent));
    if (static_cast<double>(curve.measured_from) != curve.teraflops.points().front().x) {
      out.field("measured_from", static_cast<double>(curve.measured_from));
    }
    if (static_cast<double>(curve.measured_to) != curve.teraflops.points().back().x) {
      out.field("measured_to", static_cast<double>(curve.measured_to));
    }
    out.source(curve.provenance);
    out.close();
  }
  if (!kernel.fill.empty()) {
    out.list("fill_at_tiles_per_sm", x_of(kernel.fill));
    out.list("fill_share", y_of(kernel.fill));
    out.source(kernel.fill_provenance, "fill_source");
  }
  out.field("floor_microseconds", kernel.floor.seconds() * 1e6);
  out.close();
}

void write_stream(Writer& out, const StreamCurve& curve) {
  out.list("bytes", x_of(curve.bytes_per_second));
  out.list("gigabytes_per_second", y_of(curve.bytes_per_second, 1e9));
  out.source(curve.provenance);
  out.close();
}

void write_copy(Writer& out, std::string_view name, const StreamCurve& curve) {
  if (curve.bytes_per_second.empty()) return;
  out.open(name);
  write_stream(out, curve);
}

void write_collective(Writer& out, const CollectiveCurve& curve) {
  out.open("collective");
  out.field("kind", upper(curve.kind));
  out.field("ranks", static_cast<double>(curve.ranks));
  out.field("nodes", static_cast<double>(curve.nodes));
  std::vector<double> size, time;
  for (const CollectiveCurve::Point& p : curve.points) {
    size.push_back(static_cast<double>(p.size.count()));
    time.push_back(rounded(p.time.seconds() * 1e6));
  }
  out.list("bytes", size);
  out.list("microseconds", time);
  out.source(curve.provenance);
  out.close();
}

}  // namespace

std::string save_profile_text(const DeviceProfile& profile) {
  Writer out;
  out.field("name", quoted(profile.name));
  write_device(out, profile);
  for (const GemmSurface& surface : profile.gemm) write_gemm(out, surface);
  for (const AttentionKernel& kernel : profile.attention) write_attention(out, kernel);
  for (size_t i = 0; i < kStreamClasses; ++i) {
    out.open("stream");
    out.field("class", kStreamNames[i]);
    write_stream(out, profile.stream[i]);
  }
  write_copy(out, "host_to_device", profile.host_copy[0]);
  write_copy(out, "device_to_host", profile.host_copy[1]);
  write_copy(out, "peer_copy", profile.peer_copy[0]);
  write_copy(out, "peer_copy_both_ways", profile.peer_copy[1]);
  for (const CollectiveCurve& curve : profile.collectives) write_collective(out, curve);
  return std::move(out).text();
}

std::string save_collectives_text(const std::string& name, const std::string& base,
                                  const std::vector<CollectiveCurve>& curves) {
  Writer out;
  out.field("name", quoted(name));
  out.field("base", quoted(base));
  for (const CollectiveCurve& curve : curves) write_collective(out, curve);
  return std::move(out).text();
}

}  // namespace herdsim
