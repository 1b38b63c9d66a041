#include "calibrate/fit/device_attention.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>

#include "calibrate/fit/attention_fit.h"
#include "calibrate/fit/published_rates.h"
#include "calibrate/fit/unfused_attention.h"
#include "calibrate/profile/csv_table.h"
#include "sim/models/compute_time.h"

namespace herdsim {
namespace {

constexpr std::string_view kTritonbench =
    "flash_attention/tritonbench_fa3_h100_bf16_b4_h48_d128.csv";

class AttentionAssembly {
 public:
  AttentionAssembly(const Recipe& recipe, const PublicTables& tables, const DeviceProfile* h100,
                    DeviceProfile& profile, ErrorTable* errors)
      : recipe_(recipe), tables_(tables), h100_(h100), profile_(profile), errors_(errors) {}

  void run() {
    if (recipe_.attention_causal.empty()) return scaled_kernels();
    std::vector<std::vector<AttentionMeasurement>> causal;
    for (const std::string& name : recipe_.attention_causal)
      causal.push_back(tables_.aiconfigurator(name).attention);
    AttentionFitPlan plan{.causal = true,
                          .tiles = {{64, 192, 128}, {128, 128, 128}, {256, 128, 128}},
                          .tokens = {128, 256, 512, 1024, 2048, 4096, 8192, 16384},
                          .sms = recipe_.sms};
    if (recipe_.attention_kernel == "fa2") plan.tiles = {{128, 128, 128}};
    const AttentionFit fit = fit_attention(causal, plan);
    if (errors_ != nullptr) {
      cross_validate_attention(causal, plan, profile_, recipe_.attention_kernel + " causal forward",
                               *errors_);
    }
    AttentionKernel kernel{
        .name = recipe_.attention_kernel, .curves = fit.curves, .fill = fit.fill};
    std::string files;
    for (const std::string& name : recipe_.attention_causal)
      files += (files.empty() ? "" : ", ") + name;
    const Provenance source{
        Evidence::kPublished,
        fmt::format("{}: {}; the write of the framework's key-value cache taken away",
                    kAiconfigurator, files)};
    for (AttentionCurve& curve : kernel.curves) curve.provenance = source;
    kernel.fill_provenance = source;
    double call = INFINITY;
    for (const AttentionOverhead& o : fit.overhead) call = std::min(call, o.call_seconds);
    kernel.floor = std::max(profile_.launch_floor, seconds_rounded_up(call));
    if (h100_ == nullptr) {
      full_attention(kernel);
      tritonbench(kernel);
      backward_of_other_head_dims(kernel);
      profile_.attention.push_back(std::move(kernel));
      if (errors_ != nullptr) compare_with_tritonbench();
      printed_kernels(profile_.attention[AttentionKernelId(0)]);
      return;
    }
    borrowed_attention(kernel);
  }

 private:
  // FA3's tiles without a mask: 192 x 128 up to head dimension 64, 192 x 144 up to 96.
  void full_attention(AttentionKernel& kernel) {
    const std::vector<std::vector<AttentionMeasurement>> rows = {
        with_mask(tables_.aiconfigurator(recipe_.attention_full).attention, 1.0)};
    const AttentionFitPlan plan{.causal = false,
                                .tiles = {{64, 192, 128}, {72, 192, 144}, {80, 192, 144}},
                                .tokens = {128, 256, 512, 1024, 2048, 4096, 8192, 16384, 65536},
                                .sms = recipe_.sms};
    const AttentionFit fit = fit_attention(rows, plan);
    if (errors_ != nullptr)
      cross_validate_attention(rows, plan, profile_, "fa3 full forward", *errors_);
    for (AttentionCurve curve : fit.curves) {
      if (curve.head_dim == 72) continue;  // of vision encoders; 80 is near
      curve.provenance = {Evidence::kPublished,
                          fmt::format("{}: {}", kAiconfigurator, recipe_.attention_full)};
      kernel.curves.push_back(std::move(curve));
    }
    wave_exponent_ = fit.curves.front().wave_exponent;
  }

  static std::vector<AttentionMeasurement> with_mask(std::vector<AttentionMeasurement> rows,
                                                     double fraction) {
    for (AttentionMeasurement& row : rows) row.shape.mask_fraction = fraction;
    return rows;
  }

  // FA3 at head dimension 128: the full forward, and the only public causal backward.
  void tritonbench(AttentionKernel& kernel) {
    const CsvTable table(tables_.text(std::string(kTritonbench)), std::string(kTritonbench));
    Faults faults;
    for (const auto& [pass, causal, name] : {std::tuple{AttentionPass::kForward, false, "fwd"},
                                             std::tuple{AttentionPass::kBackward, true, "bwd"},
                                             std::tuple{AttentionPass::kBackward, false, "bwd"}}) {
      AttentionCurve curve{.pass = pass, .causal = causal, .head_dim = 128};
      if (!causal) curve.wave_exponent = wave_exponent_;
      std::vector<PrintedRate> printed;
      for (size_t row = 0; row < table.rows(); ++row) {
        const bool row_causal = table.cell(row, *table.column("causal")) == "1";
        if (table.cell(row, *table.column("pass")) != name || row_causal != causal) continue;
        const auto tokens =
            static_cast<int64_t>(table.positive_number(row, *table.column("seqlen"), faults));
        printed.push_back({tritonbench_shape(tokens, causal, pass),
                           table.positive_number(row, *table.column("tflops"), faults)});
      }
      faults.throw_if_any();
      curve.teraflops = saturated_rates(printed, curve, kernel, recipe_.sms);
      curve.measured_from = static_cast<int64_t>(curve.teraflops.points().front().x);
      curve.measured_to = static_cast<int64_t>(curve.teraflops.points().back().x);
      curve.provenance = {Evidence::kPublished,
                          "meta-pytorch/tritonbench PRs 1254, 1256, 1267: FA3 at batch 4, 48 "
                          "heads; beyond 1,024 to 8,192 tokens it follows "
                          "the causal forward curve"};
      follow_forward(kernel, curve);
      kernel.curves.push_back(std::move(curve));
    }
  }

  // The causal forward rows of the same table are not fitted: short runs of a newer FA3, to see how
  // far sources differ.
  void compare_with_tritonbench() {
    const CsvTable table(tables_.text(std::string(kTritonbench)), std::string(kTritonbench));
    Faults faults;
    for (size_t row = 0; row < table.rows(); ++row) {
      if (table.cell(row, *table.column("pass")) != "fwd" ||
          table.cell(row, *table.column("causal")) != "1")
        continue;
      const auto tokens =
          static_cast<int64_t>(table.positive_number(row, *table.column("seqlen"), faults));
      const AttentionShape shape = tritonbench_shape(tokens, true, AttentionPass::kForward);
      errors_->add("fa3 causal forward, tritonbench (not fitted)",
                   attention_cost(shape, AttentionKernelId(0), profile_).time.seconds(),
                   1e-6 * table.positive_number(row, *table.column("time_us"), faults));
    }
    faults.throw_if_any();
  }

  static AttentionShape tritonbench_shape(int64_t tokens, bool causal, AttentionPass pass) {
    return {.batch = 4,
            .query_tokens = tokens,
            .kv_tokens = tokens,
            .heads = 48,
            .kv_heads = 48,
            .head_dim = 128,
            .mask_fraction = causal ? 0.5 : 1.0,
            .pass = pass};
  }

  // Below what was measured a curve falls as the causal forward one does; above it stays.
  static void follow_forward(const AttentionKernel& kernel, AttentionCurve& curve) {
    const auto forward =
        std::find_if(kernel.curves.begin(), kernel.curves.end(), [&](const AttentionCurve& c) {
          return c.pass == AttentionPass::kForward && c.causal && c.head_dim == curve.head_dim;
        });
    std::vector<LogCurve::Point> points;
    const LogCurve::Point first = curve.teraflops.points().front();
    for (const LogCurve::Point& p : forward->teraflops.points()) {
      if (p.x < first.x) points.push_back({p.x, first.y * p.y / forward->teraflops.at(first.x)});
    }
    points.insert(points.end(), curve.teraflops.points().begin(), curve.teraflops.points().end());
    curve.teraflops = LogCurve(std::move(points));
  }

  // The backward curve of head dimension 128, times how the forward curves compare.
  static void backward_of_other_head_dims(AttentionKernel& kernel) {
    const std::vector<AttentionCurve> curves = kernel.curves;
    const auto find = [&](AttentionPass pass, int64_t head_dim) {
      return *std::find_if(curves.begin(), curves.end(), [&](const AttentionCurve& c) {
        return c.pass == pass && c.causal && c.head_dim == head_dim;
      });
    };
    const AttentionCurve reference = find(AttentionPass::kForward, 128);
    for (const int64_t head_dim : {int64_t{64}, int64_t{256}}) {
      AttentionCurve curve = find(AttentionPass::kBackward, 128);
      const AttentionCurve forward = find(AttentionPass::kForward, head_dim);
      std::vector<LogCurve::Point> points = curve.teraflops.points();
      for (LogCurve::Point& p : points)
        p.y *= std::min(1.0, forward.teraflops.at(p.x) / reference.teraflops.at(p.x));
      curve.teraflops = LogCurve(std::move(points));
      curve.head_dim = head_dim;
      curve.provenance = {
          Evidence::kAssumed,
          "the backward curve of head dimension 128, slower as the forward curve is"};
      kernel.curves.push_back(std::move(curve));
    }
  }

  void printed_kernels(const AttentionKernel& fa3) {
    std::vector<AttentionKernel> kernels;
    for (const PrintedAttention& printed : printed_h100_attention()) {
      if (kernels.empty() || kernels.back().name != printed.kernel) {
        kernels.push_back(
            {.name = std::string(printed.kernel), .fill = fa3.fill, .floor = fa3.floor});
        kernels.back().fill_provenance = {Evidence::kAssumed, "that of fa3"};
      }
      AttentionCurve curve{.pass = printed.pass, .causal = printed.causal, .head_dim = 128};
      std::vector<PrintedRate> rates;
      for (const LogCurve::Point& p : printed.rates)
        rates.push_back({printed_shape(printed, p.x), p.y});
      if (!printed.causal) curve.wave_exponent = wave_exponent_;
      curve.teraflops = saturated_rates(rates, curve, kernels.back(), recipe_.sms);
      curve.measured_from =
          static_cast<int64_t>(printed.kernel == "triton-fa1" ? 2048 : printed.rates.front().x);
      curve.measured_to = static_cast<int64_t>(printed.rates.back().x);
      curve.provenance = {printed.evidence, std::string(printed.source)};
      kernels.back().curves.push_back(std::move(curve));
    }
    for (AttentionKernel& kernel : kernels) profile_.attention.push_back(std::move(kernel));
  }

  // A device without tables. FA3 needs Hopper's instructions; what was written for Ampere gains
  // from more SMs alone, cuDNN's kernels are made anew for each generation.
  void scaled_kernels() {
    const DeviceProfile& h100 = *h100_;
    const double by_peak = recipe_.bf16 * 1e12 / h100.peak_of(DataType::kBf16).per_second();
    const double by_sms = static_cast<double>(recipe_.sms) / static_cast<double>(h100.sms);
    const bool hopper = by_peak <= 1;
    for (AttentionKernel kernel : h100.attention) {
      if (kernel.name == kUnfusedAttention || (kernel.name == "fa3" && !hopper)) continue;
      const double ratio = hopper || kernel.name == "cudnn9" ? by_peak : by_sms;
      for (AttentionCurve& curve : kernel.curves) {
        std::vector<LogCurve::Point> points = curve.teraflops.points();
        for (LogCurve::Point& p : points) p.y *= ratio;
        curve.teraflops = LogCurve(std::move(points));
        curve.provenance = {Evidence::kAssumed,
                            fmt::format("h100-sxm5-80gb, {:.2f} times the rate", ratio)};
      }
      kernel.fill_provenance = {Evidence::kAssumed, "that of h100-sxm5-80gb"};
      profile_.attention.push_back(std::move(kernel));
    }
  }

  // A device with a forward table only: the backward pass keeps the H100's ratio to the forward
  // one; kernels that were never timed on it scale as the one that was.
  void borrowed_attention(AttentionKernel& kernel) {
    const DeviceProfile& h100 = *h100_;
    const auto forward_of = [](const AttentionKernel& k) {
      return *std::find_if(k.curves.begin(), k.curves.end(), [](const AttentionCurve& c) {
        return c.pass == AttentionPass::kForward && c.causal && c.head_dim == 128;
      });
    };
    const AttentionKernel& same = h100.attention[*h100.attention_kernel(kernel.name)];
    const LogCurve here = forward_of(kernel).teraflops, there = forward_of(same).teraflops;
    const auto scaled = [&](AttentionCurve curve) {
      std::vector<LogCurve::Point> points = curve.teraflops.points();
      for (LogCurve::Point& p : points)
        p.y = std::min(p.y * here.at(p.x) / there.at(p.x), recipe_.bf16);
      curve.teraflops = LogCurve(std::move(points));
      curve.provenance = {
          Evidence::kAssumed,
          fmt::format("h100-sxm5-80gb, scaled as the causal forward pass of {} compares",
                      kernel.name)};
      return curve;
    };
    for (const AttentionCurve& curve : same.curves) {
      if (curve.pass == AttentionPass::kBackward || !curve.causal)
        kernel.curves.push_back(scaled(curve));
    }
    const std::string timed = kernel.name;
    profile_.attention.push_back(std::move(kernel));
    const AttentionKernel& own = profile_.attention[AttentionKernelId(0)];
    std::vector<AttentionKernel> others;
    for (const AttentionKernel& other : h100.attention) {
      // FA3 needs Hopper's instructions.
      if (other.name == timed || other.name == kUnfusedAttention ||
          (timed == "fa2" && (other.name == "fa3" || other.name == "cudnn9")))
        continue;
      AttentionKernel copy{.name = other.name,
                           .fill = own.fill,
                           .fill_provenance = {Evidence::kAssumed, "that of " + timed},
                           .floor = own.floor};
      for (const AttentionCurve& curve : other.curves) copy.curves.push_back(scaled(curve));
      others.push_back(std::move(copy));
    }
    for (AttentionKernel& other : others) profile_.attention.push_back(std::move(other));
  }

  const Recipe& recipe_;
  const PublicTables& tables_;
  const DeviceProfile* h100_;
  DeviceProfile& profile_;
  ErrorTable* errors_;
  double wave_exponent_ = 0;  // of FA3 without a mask
};

}  // namespace

void fit_device_attention(const Recipe& recipe, const PublicTables& tables,
                          const DeviceProfile* h100, DeviceProfile& profile, ErrorTable* errors) {
  AttentionAssembly(recipe, tables, h100, profile, errors).run();
}

}  // namespace herdsim
