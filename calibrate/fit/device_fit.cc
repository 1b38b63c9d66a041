#include "calibrate/fit/device_fit.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "calibrate/fit/collective_fit.h"
#include "calibrate/fit/device_attention.h"
#include "calibrate/fit/gemm_fit.h"
#include "calibrate/fit/isotonic.h"
#include "calibrate/fit/published_rates.h"
#include "calibrate/fit/recipe.h"
#include "calibrate/fit/stream_fit.h"
#include "calibrate/fit/unfused_attention.h"
#include "calibrate/profile/csv_table.h"
#include "sim/base/error.h"
#include "sim/models/compute_time.h"

namespace herdsim {
namespace {

// What devices with fewer tables borrow from.
constexpr std::string_view kReference = "h100-sxm5-80gb";
constexpr double kCollectiveTolerance = 0.03;

const Recipe& recipe_of(const std::string& name) {
  for (const Recipe& recipe : recipes()) {
    if (recipe.name == name) return recipe;
  }
  throw SpecError({{.field = "device",
                    .problem = "no recipe is called \"" + name + "\"",
                    .nearest = nearest_name(name, fitted_devices())}});
}

class DeviceFitter {
 public:
  DeviceFitter(const Recipe& recipe, std::string folder, bool cross_validate)
      : recipe_(recipe), tables_(std::move(folder)), cross_validate_(cross_validate) {}

  DeviceFit run() {
    data_sheet();
    if (recipe_.name != kReference)
      h100_ = fit_device(std::string(kReference), tables_.folder(), false).profile;
    if (recipe_.gemm_sustained.empty()) {
      gemm_of_h100();
    } else {
      gemm();
    }
    fit_device_attention(recipe_, tables_, h100_ ? &*h100_ : nullptr, profile_,
                         cross_validate_ ? &errors_ : nullptr);
    if (recipe_.liger_gpu.empty()) {
      streams_of_h100();
    } else {
      streams();
    }
    profile_.attention.push_back(unfused_attention(profile_));
    host_copies();
    collectives();
    return {std::move(profile_), errors_.summaries()};
  }

 private:
  // Without a table of its own.
  bool scaled() const { return recipe_.attention_causal.empty(); }

  void data_sheet() {
    profile_.name = recipe_.name;
    profile_.device = recipe_.device;
    profile_.peak = {teraflops(recipe_.bf16), teraflops(recipe_.fp8), teraflops(recipe_.bf16),
                     teraflops(recipe_.fp32)};
    profile_.hbm = mebibytes(recipe_.hbm_mebibytes);
    profile_.hbm_bandwidth = bytes_per_second(recipe_.hbm_gigabytes_per_second * 1e9);
    profile_.sms = recipe_.sms;
    profile_.board_watts = recipe_.board_watts;
    profile_.device_provenance = {Evidence::kVendor, recipe_.data_sheet};
    profile_.launch_floor = nanoseconds(2500);
    profile_.launch_provenance = {
        Evidence::kPublished,
        fmt::format("{}: shortest products, replayed in a CUDA graph", kAiconfigurator)};
    profile_.training_clock = recipe_.training_clock;
    if (profile_.training_clock != 1) {
      profile_.clock_provenance = {Evidence::kPublished,
                                   "fitted to published training steps of Megatron, llm-foundry "
                                   "and MaxText on H100 at 700 W; 0.93 to 0.97"};
      if (scaled()) {
        profile_.clock_provenance = {
            Evidence::kAssumed,
            recipe_.training_said.empty()
                ? "0.95 on an H100 at 700 W; less where the board has little power"
                : std::string(recipe_.training_said)};
      }
    }
    // A product of one wave of tiles at 80 % of its peak fell to 47 % beside an all-gather of 24 SMs: (1 - 47 / 80) * 132
    // of 24. Products of many waves lose less.
    profile_.sharing_provenance = {
        Evidence::kAssumed,
        "the SMs of the transfer alone; 1 to 2.3: one-wave products lose 2.3 beside an all-gather "
        "(NVIDIA developer forum, topic 337991, H100)"};
  }

  void gemm() {
    std::vector<GemmSource> sources;
    sources.push_back(
        {tables_.aiconfigurator(recipe_.gemm_sustained).gemm, !recipe_.gemm_burst.empty()});
    if (!recipe_.gemm_burst.empty())
      sources.push_back({tables_.aiconfigurator(recipe_.gemm_burst).gemm, false});
    const GemmGrid grid =
        recipe_.gemm_tiles.empty() ? default_gemm_grid() : tiled_gemm_grid(recipe_.gemm_tiles);
    profile_.gemm.push_back(fit_gemm(sources, DataType::kBf16, profile_, grid));
    profile_.gemm.back().provenance = {
        Evidence::kPublished,
        fmt::format("{}: {}{}{}", kAiconfigurator, recipe_.gemm_sustained,
                    recipe_.gemm_burst.empty() ? "" : " (sustained), ",
                    recipe_.gemm_burst.empty() ? "" : recipe_.gemm_burst + " (bursts)")};
    layouts(profile_.gemm.back());
    if (cross_validate_) {
      cross_validate_gemm(sources, DataType::kBf16, profile_, grid, "bf16 products", errors_);
    }
    if (!recipe_.gemm_fp8.empty()) gemm_fp8();
  }

  void gemm_fp8() {
    GemmSource source{tables_.aiconfigurator(recipe_.gemm_fp8).gemm, false};
    std::erase_if(source.rows, [](const GemmMeasurement& row) { return row.dtype != "fp8"; });
    // The framework casts the activations in the timed call. It costs about 10 us, or what a
    // product of next to nothing takes.
    const std::vector<GemmSource> sources = {source};
    profile_.gemm.push_back(fit_gemm(sources, DataType::kFp8, profile_, coarse_gemm_grid()));
    profile_.gemm.back().provenance = {
        Evidence::kPublished,
        fmt::format("{}: {}, per-tensor scales, the cast of the activations included, bursts",
                    kAiconfigurator, recipe_.gemm_fp8)};
    layouts(profile_.gemm.back());
    if (cross_validate_) {
      cross_validate_gemm(sources, DataType::kFp8, profile_, coarse_gemm_grid(), "fp8 products",
                          errors_);
    }
  }

  static void layouts(GemmSurface& surface) {
    surface.dgrad_rate = 1.0;
    surface.wgrad_rate = 0.95;
    surface.layout_provenance = {Evidence::kAssumed,
                                 "no public table of the gradient layouts on this device; "
                                 "A100-PCIe gives dgrad 1.005, wgrad 0.951 of the forward rate "
                                 "(MooreThreads/SimuMax @4dcaae5)"};
  }

  // Products take what they take on an H100, times the ratio of the peaks where arithmetic bounds
  // them and of the memory rates, or what was measured instead, where memory does. An H200's: 1.04
  // and 0.84 to 0.94.
  void gemm_of_h100() {
    const DeviceProfile& h100 = *h100_;
    const double memory_time =
        recipe_.memory_time > 0
            ? recipe_.memory_time
            : static_cast<double>(h100.hbm_bandwidth.bytes_per_second()) /
                  static_cast<double>(profile_.hbm_bandwidth.bytes_per_second());
    for (GemmSurface surface : h100.gemm) {
      const auto& axes = surface.nanoseconds.axes();
      const double operand = static_cast<double>(bytes_per_element(surface.dtype));
      const double arithmetic_time =
          h100.peak_of(surface.dtype).per_second() / profile_.peak_of(surface.dtype).per_second();
      std::vector<double> time;
      for (const double m : axes[0].nodes()) {
        for (const double n : axes[1].nodes()) {
          for (const double k : axes[2].nodes()) {
            const double arithmetic = 2 * m * n * k / h100.peak_of(surface.dtype).per_second();
            const double memory = (operand * (m * k + n * k) + 2 * m * n) /
                                  static_cast<double>(h100.hbm_bandwidth.bytes_per_second());
            const double share = memory / (memory + arithmetic);
            time.push_back((1 - share) * arithmetic_time + share * memory_time);
          }
        }
      }
      for (size_t i = 0; i < time.size(); ++i) time[i] *= surface.nanoseconds.values()[i];
      // The shares differ between neighbours by little; where a node would fall it is levelled.
      make_grid_nondecreasing({axes[0].size(), axes[1].size(), axes[2].size()}, time,
                              std::vector<double>(time.size(), 1.0));
      surface.nanoseconds = LogGrid3(axes, std::move(time));
      surface.provenance = {Evidence::kAssumed, surface_source(arithmetic_time, memory_time)};
      profile_.gemm.push_back(std::move(surface));
    }
  }

  std::string surface_source(double arithmetic_time, double memory_time) const {
    if (recipe_.memory_time > 0) {
      return "the surface of h100-sxm5-80gb, up to 11 % faster where memory bounds "
             "(public H200 to H100 ratios: 1.04 "
             "where arithmetic bounds, 0.84 to 0.94 where memory does)";
    }
    return fmt::format(
        "the times of h100-sxm5-80gb, {:.3f} of them where arithmetic bounds and {:.3f} where "
        "memory "
        "does, as the data sheets compare",
        arithmetic_time, memory_time);
  }

  void streams() {
    const std::vector<StreamMeasurement> rows = tables_.liger(recipe_.liger_gpu);
    for (const auto& [stream, name] : {std::pair{StreamClass::kFused, "fused streams"},
                                       {StreamClass::kFramework, "framework streams"}}) {
      double least = INFINITY, most = 0;
      for (const StreamMeasurement& row : rows) {
        if (row.traffic.stream != stream) continue;
        least = std::min(least, static_cast<double>(row.traffic.moved.count()));
        most = std::max(most, static_cast<double>(row.traffic.moved.count()));
      }
      StreamCurve& curve = profile_.stream[static_cast<size_t>(stream)];
      curve.bytes_per_second = fit_stream(rows, stream, profile_.launch_floor).curve(least, most);
      curve.provenance = {Evidence::kPublished,
                          stream == StreamClass::kFused
                              ? "linkedin/Liger-Kernel @ead96b61 (BSD-2): Liger's forward RMSNorm, "
                                "LayerNorm and SwiGLU"
                              : "linkedin/Liger-Kernel @ead96b61 (BSD-2): the PyTorch, Hugging "
                                "Face and Megatron kernels beside them"};
      if (cross_validate_) cross_validate_stream(rows, stream, profile_, name, errors_);
    }
    if (cross_validate_ && recipe_.name == kReference) compare_with_vidur();
    optimizer_stream();
  }

  // silu(x) * y of an inference framework: two bf16 numbers read, one written, times to the
  // microsecond.
  void compare_with_vidur() {
    const std::string file = "vidur/membound_h100_Llama-2-70b-hf.csv";
    const CsvTable table(tables_.text(file), file);
    Faults faults;
    for (size_t row = 0; row < table.rows(); ++row) {
      const auto number = [&](std::string_view column) {
        return table.positive_number(row, *table.column(column), faults);
      };
      const MemoryTraffic traffic{
          Bytes(std::llround(6 * number("num_tokens") * number("ffn") / number("tp"))),
          StreamClass::kFramework};
      if (traffic.moved < megabytes(16)) continue;
      errors_.add("framework streams, vidur silu (not fitted)",
                  stream_cost(traffic, profile_).time.seconds(), 1e-3 * number("mlp_act_ms"));
    }
    faults.throw_if_any();
  }

  // A fused Adam moves 2.108 TB/s on a 2.4 TB/s part (539 M parameters, 14 bytes each): that share
  // of the memory rate here.
  void optimizer_stream() {
    constexpr double kShare = 2.108 / 2.4;
    std::vector<LogCurve::Point> points =
        profile_.stream_of(StreamClass::kFused).bytes_per_second.points();
    const double last = points.back().y;
    for (LogCurve::Point& p : points) p.y *= kShare * recipe_.hbm_gigabytes_per_second * 1e9 / last;
    points.push_back({7.5e9, points.back().y * 1.001});
    StreamCurve& curve = profile_.stream[static_cast<size_t>(StreamClass::kOptimizer)];
    curve.bytes_per_second = LogCurve(std::move(points));
    curve.provenance = {Evidence::kAssumed,
                        "fused Adam at 88 % of the memory rate, as on a 2.4 TB/s H100 (pytorch PR "
                        "119842); small sizes as fused streams"};
  }

  void streams_of_h100() {
    const DeviceProfile& h100 = *h100_;
    const double ratio = static_cast<double>(profile_.hbm_bandwidth.bytes_per_second()) /
                         static_cast<double>(h100.hbm_bandwidth.bytes_per_second());
    for (size_t i = 0; i < kStreamClasses; ++i) {
      std::vector<LogCurve::Point> points;
      for (LogCurve::Point p : h100.stream[i].bytes_per_second.points()) {
        // The ramp stays; what passes at the memory's rate is faster.
        const double full = h100.stream[i].bytes_per_second.points().back().y;
        const double seconds = p.x / p.y - p.x / full + p.x / (full * ratio);
        points.push_back({p.x, p.x / seconds});
      }
      profile_.stream[i].bytes_per_second = LogCurve(std::move(points));
      profile_.stream[i].provenance = {Evidence::kAssumed,
                                       "h100-sxm5-80gb, at the same share of the memory rate"};
    }
  }

  void host_copies() {
    const bool fourth_generation = recipe_.name == "a100-sxm4-80gb";
    const double peak = fourth_generation ? 25e9 : 55e9;
    for (StreamCurve& curve : profile_.host_copy) {
      // 10 us to start a copy, then the link.
      std::vector<LogCurve::Point> points;
      for (double bytes = 65536; bytes < 2e9; bytes *= 16)
        points.push_back({bytes, bytes / (10e-6 + bytes / peak)});
      curve.bytes_per_second = LogCurve(std::move(points));
      curve.provenance = {Evidence::kAssumed,
                          fmt::format("pinned memory over PCIe {}.0 x16 at {:.0f} GB/s after 10 us",
                                      fourth_generation ? 4 : 5, peak * 1e-9)};
    }
  }

  void collectives() {
    if (recipe_.nccl.empty()) return;
    std::vector<CollectiveMeasurement> rows = tables_.aiconfigurator(recipe_.nccl).collective;
    // Switches do not add 8-bit integers, and nobody trains with them: their sums take a quarter
    // longer.
    std::erase_if(rows, [](const CollectiveMeasurement& row) {
      return row.dtype == "int8" && (row.kind == "all_reduce" || row.kind == "reduce_scatter");
    });
    std::string source = fmt::format("{}: {}", kAiconfigurator, recipe_.nccl);
    if (recipe_.name == kReference) {
      append_log(rows, "h100_cluster01_N1_G4_002", {.ranks = 4, .nodes = 1});
      append_log(rows, "h100_cluster01_N1_G8_002", {.ranks = 8, .nodes = 1});
      source += "; xxrjun/nccl-tests-cluster @455de4f (Apache-2.0), NCCL 2.29.2";
    }
    // Send/recv over 8 ranks is a ring of pairs, not a pair.
    profile_.collectives =
        fit_collectives(rows, {Evidence::kPublished, source}, kCollectiveTolerance);
    if (cross_validate_) cross_validate_collectives(rows, kCollectiveTolerance, errors_);
    across_nodes();
  }

  void across_nodes() {
    std::vector<CollectiveMeasurement> rows;
    std::string source;
    if (recipe_.name == kReference) {
      for (const int64_t a_node : {1, 2, 4, 8})
        append_log(rows, fmt::format("h100_cluster01_N10_G{}", a_node),
                   {.ranks = 10 * a_node, .nodes = 10});
      append_log(rows, "h100_issue309_dell_N2_allreduce", {.ranks = 16, .nodes = 2});
      append_log(rows, "h100_issue309_dell_N4_allreduce", {.ranks = 32, .nodes = 4});
      source =
          "nccl-tests logs: xxrjun/nccl-tests-cluster @455de4f (10 nodes, 400 Gb/s a GPU) and "
          "NVIDIA/nccl-tests issue 309 (2 and 4 "
          "nodes, NDR400 InfiniBand)";
    } else if (recipe_.name == "h200-sxm-141gb") {
      append_log(rows, "h200_gcp_a3ultra_N2_G1_allgather",
                 {.collective = "all_gather", .ranks = 2, .nodes = 2});
      append_log(rows, "h200_gcp_a3ultra_N2_G1_allreduce",
                 {.collective = "all_reduce", .ranks = 2, .nodes = 2});
      append_log(rows, "h200_gcp_a3ultra_N2_allgather",
                 {.collective = "all_gather", .ranks = 16, .nodes = 2});
      source =
          "nccl-tests logs: GKE A3 Ultra, 400 Gb/s RoCE a GPU (google/dranet @7b7661a, SkyPilot "
          "documentation)";
    }
    const std::vector<CollectiveCurve> curves =
        fit_collectives(rows, {Evidence::kPublished, source}, kCollectiveTolerance);
    profile_.collectives.insert(profile_.collectives.end(), curves.begin(), curves.end());
    if (cross_validate_ && !rows.empty())
      cross_validate_collectives(rows, kCollectiveTolerance, errors_);
    if (recipe_.name != kReference) return;
    for (CollectiveCurve& curve : printed_h100_all_reduce()) {
      // 32 ranks on 4 nodes were logged, with more sizes.
      if (profile_.collective(curve.kind, curve.ranks, curve.nodes) == nullptr)
        profile_.collectives.push_back(std::move(curve));
    }
  }

  void append_log(std::vector<CollectiveMeasurement>& rows, const std::string& name,
                  const NcclTestsHints& job) const {
    const std::vector<CollectiveMeasurement> log = tables_.nccl_log(name, job);
    rows.insert(rows.end(), log.begin(), log.end());
  }

  const Recipe& recipe_;
  PublicTables tables_;
  std::optional<DeviceProfile> h100_;  // but for the H100 itself
  bool cross_validate_ = false;
  DeviceProfile profile_;
  ErrorTable errors_;
};

}  // namespace

const std::vector<std::string>& fitted_devices() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> all;
    for (const Recipe& recipe : recipes()) all.push_back(recipe.name);
    return all;
  }();
  return names;
}

DeviceFit fit_device(const std::string& name, const std::string& data_folder, bool cross_validate) {
  return DeviceFitter(recipe_of(name), data_folder, cross_validate).run();
}

std::string error_table_text(const std::vector<ErrorSummary>& errors) {
  std::string out = fmt::format("{:<48} {:>7} {:>8} {:>8} {:>8}  {}\n", "cross-validated by shape",
                                "rows", "median", "p90", "bias", "goal");
  for (const ErrorSummary& e : errors) {
    std::string goal;
    if (e.goal_median > 0) {
      goal = fmt::format("{:.0f} % / {:.0f} %  {}", 100 * e.goal_median, 100 * e.goal_p90,
                         e.meets_goal() ? "met" : "MISSED");
    }
    out += fmt::format("{:<48} {:>7} {:>6.1f} % {:>6.1f} % {:>+6.1f} %  {}\n", e.group, e.count,
                       100 * e.median, 100 * e.p90, 100 * e.bias, goal);
  }
  return out;
}

}  // namespace herdsim
