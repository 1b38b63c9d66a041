#include "sim/metrics/step_result.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/base/check.h"
#include "sim/base/fingerprint.h"

namespace herdsim {
namespace {

double gpu_seconds(const StepResult& r) {
  HERDSIM_CHECK(r.gpus > 0 && r.step_time > Duration::zero())
      << "scenario " << r.scenario << ": " << r.gpus << " GPUs, " << r.step_time.nanoseconds()
      << " ns";
  return static_cast<double>(r.gpus) * r.step_time.seconds();
}

double utilisation(FlopRate achieved, const StepResult& r) {
  HERDSIM_CHECK(r.peak.per_second() > 0) << "scenario " << r.scenario;
  return achieved.per_second() / r.peak.per_second();
}

void warn_of_utilisation(const StepResult& r, std::vector<std::string>& warnings) {
  if (r.peak.per_second() <= 0 || r.mfu_causal() <= 1.0) return;
  warnings.push_back(fmt::format(
      "MFU is {:.1f} %, more than the device can do: {:.1f} TFLOP/s per GPU against a peak of "
      "{:.1f} ({}, dense); look for a "
      "kernel faster than the peak, work that is counted but not simulated, or the peak of another "
      "data type",
      100 * r.mfu_causal(), r.flops_per_gpu_causal().teraflops(), r.peak.teraflops(), r.dtype));
}

void warn_of_account(const StepResult& r, std::vector<std::string>& warnings) {
  Int128 sum = 0;
  for (const int64_t term : r.account_rank_nanoseconds) sum += term;
  const Int128 whole = static_cast<Int128>(r.gpus) * r.step_time.nanoseconds();
  if (sum == whole) return;
  warnings.push_back(
      fmt::format("the time account holds {:.6f} s of rank time but the step has {:.6f} s: a rank "
                  "was counted twice or not at all",
                  static_cast<double>(sum) * 1e-9, static_cast<double>(whole) * 1e-9));
}

void warn_of_memory(const StepResult& r, std::vector<std::string>& warnings) {
  if (r.fits()) return;
  const StageMemory& stage = *r.peak_stage();
  warnings.push_back(
      fmt::format("stage {} needs {:.2f} GB at {} but the device has {:.2f} GB: this run would "
                  "stop with out of memory",
                  stage.stage, static_cast<double>(stage.peak.count()) * 1e-9, stage.moment,
                  static_cast<double>(r.memory_capacity.count()) * 1e-9));
}

}  // namespace

double LinkUse::use(Duration step) const {
  const double rate = std::max(1.0, static_cast<double>(capacity.bytes_per_second()));
  return static_cast<double>(carried.count()) / rate / step.seconds();
}

std::string LinkUse::loads_text() const {
  std::string text;
  for (const Load& load : loads) {
    const double share = 100.0 * static_cast<double>(load.carried.count()) /
                         static_cast<double>(std::max<int64_t>(1, carried.count()));
    text += (text.empty() ? "" : ", ") + load.transfer + " " +
            std::to_string(static_cast<int64_t>(share + 0.5)) + " %";
  }
  return text;
}

double StepResult::tokens_per_second_per_gpu() const {
  return static_cast<double>(tokens_per_step) / gpu_seconds(*this);
}

FlopRate StepResult::flops_per_gpu_causal() const {
  return FlopRate::from_per_second(model_flops_causal.count() / gpu_seconds(*this));
}

FlopRate StepResult::flops_per_gpu_full() const {
  return FlopRate::from_per_second(model_flops_full.count() / gpu_seconds(*this));
}

double StepResult::mfu_causal() const { return utilisation(flops_per_gpu_causal(), *this); }

double StepResult::mfu_full() const { return utilisation(flops_per_gpu_full(), *this); }

double StepResult::bubble_fraction() const {
  const auto bubble = account_rank_nanoseconds[static_cast<size_t>(TimeTerm::kBubble)];
  return static_cast<double>(bubble) * 1e-9 / gpu_seconds(*this);
}

std::array<double, kTimeTerms> StepResult::time_account_seconds() const {
  HERDSIM_CHECK(gpus > 0) << "scenario " << scenario;
  std::array<double, kTimeTerms> seconds{};
  for (size_t i = 0; i < kTimeTerms; ++i) {
    // The whole and the rest apart: a sum over 16,384 ranks of a long step has more digits than a
    // double.
    const int64_t whole = account_rank_nanoseconds[i] / gpus;
    const int64_t rest = account_rank_nanoseconds[i] % gpus;
    seconds[i] =
        (static_cast<double>(whole) + static_cast<double>(rest) / static_cast<double>(gpus)) * 1e-9;
  }
  return seconds;
}

const StageMemory* StepResult::peak_stage() const {
  const StageMemory* highest = nullptr;
  for (const StageMemory& stage : memory) {
    if (highest == nullptr || stage.peak > highest->peak) highest = &stage;
  }
  return highest;
}

bool StepResult::fits() const {
  const StageMemory* highest = peak_stage();
  return highest == nullptr || highest->peak <= memory_capacity;
}

std::vector<std::string> StepResult::all_warnings() const {
  std::vector<std::string> all = warnings;
  if (gpus <= 0 || step_time <= Duration::zero()) {
    all.push_back("the step takes no time: nothing was simulated");
    return all;
  }
  warn_of_utilisation(*this, all);
  warn_of_account(*this, all);
  warn_of_memory(*this, all);
  return all;
}

std::string StepResult::fingerprint() const {
  Fingerprint hash;
  hash.add(std::string_view(scenario));
  hash.add(gpus);
  hash.add(step_time);
  hash.add(tokens_per_step);
  hash.add(model_flops_causal.count());
  hash.add(model_flops_full.count());
  hash.add(peak.per_second());
  hash.add(std::string_view(dtype));
  for (const int64_t term : account_rank_nanoseconds) hash.add(term);
  hash.add(static_cast<uint64_t>(stage_account.size()));
  for (const TimeAccount& account : stage_account) {
    for (const Duration term : account) hash.add(term);
  }
  hash.add(static_cast<uint64_t>(memory.size()));
  for (const StageMemory& stage : memory) {
    hash.add(stage.stage);
    hash.add(std::string_view(stage.moment));
    for (const Bytes part :
         {stage.peak, stage.weights, stage.gradients, stage.optimizer, stage.activations,
          stage.logits, stage.communication, stage.overhead}) {
      hash.add(part);
    }
  }
  hash.add(memory_capacity);
  return hash.text();
}

}  // namespace herdsim
