#include "tools/study/formula_sheet.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/table.h"
#include "sim/base/text.h"
#include "tools/study/closed_forms.h"
#include "workloads/lowering.h"

namespace herdsim {
namespace {

double share(const StepResult& step, TimeTerm term) {
  return 100 * step.time_account_seconds()[static_cast<size_t>(term)] / step.step_time.seconds();
}

std::string number_text(double value) {
  if (std::abs(value) >= 1e7) return fmt::format("{:.3e}", value);
  if (std::abs(value) >= 1'000) return count_text(static_cast<int64_t>(std::llround(value)));
  return fmt::format("{:.3g}", value);
}

class Sheet {
 public:
  Sheet(const Scenario& base, const RankedPlan& best, const PlanCost* cost, const RankedPlan* first)
      : base_(base),
        best_(best),
        plan_(best.candidate.plan),
        step_(best.step),
        cost_(cost),
        first_(first) {
    const FlopRate peak = base.profile.peak_of(base.training.precision);
    nvlink_ = flops_per_byte(peak, base.cluster.nvlink);
    nic_ = flops_per_byte(peak, base.cluster.nic);
    tokens_ = static_cast<double>(base.training.tokens());
    gpus_ = static_cast<double>(base.gpus);
    ffn_ = static_cast<double>(base.model.ffn);
    parameters_ = static_cast<double>(base.model.parameters());
    sheet_.gpus = base.gpus;
    sheet_.plan = best.candidate.text();
  }

  FormulaSheet fill() {
    add_work();
    add_memory();
    add_bounds();
    add_pipeline();
    if (first_ != nullptr) add_scaling();
    decide();
    return std::move(sheet_);
  }

 private:
  void add(FormulaRow row) { sheet_.rows.push_back(std::move(row)); }

  void add_work() {
    const auto steps_tokens = static_cast<double>(step_.tokens_per_step);
    const double tokens = cost_ != nullptr ? cost_->tokens : steps_tokens;
    const double flops = training_flops(parameters_, tokens);
    const double simulated =
        static_cast<double>(step_.model_flops_causal.count()) * tokens / steps_tokens;
    add({.name = cost_ != nullptr ? "FLOPs of the training" : "FLOPs of a step",
         .formula = "6 P T",
         .value = flops,
         .unit = "",
         .plan = std::nullopt,
         .simulated = simulated,
         .simulated_unit = "with causal attention",
         .note = fmt::format("attention and the unembedding make {:+.1f} %",
                             100 * (simulated / flops - 1))});
    if (cost_ == nullptr) return;
    const double rate = step_.mfu_causal() * step_.peak.per_second();
    add({.name = "days at the simulated MFU",
         .formula = "6 P T / (N C MFU)",
         .value = training_days(flops, gpus_, rate),
         .unit = "d",
         .plan = std::nullopt,
         .simulated = cost_->days,
         .simulated_unit = "with failures",
         .note = fmt::format("the whiteboard has no attention, and no failures: effective training "
                             "time is {:.1f} %",
                             100 * cost_->effective_training_time)});
    add({.name = "GPU-hours",
         .formula = "days 24 N",
         .value = training_days(flops, 1, rate) * 24,
         .unit = "h",
         .plan = std::nullopt,
         .simulated = cost_->gpu_hours,
         .simulated_unit = "with failures",
         .note = ""});
  }

  void add_memory() {
    const StateLedger ledger;
    const double state = parameters_ * ledger.bytes_a_parameter() * 1e-9;
    const StageMemory& peak = *step_.peak_stage();
    const auto gigabytes = [](Bytes bytes) { return static_cast<double>(bytes.count()) * 1e-9; };
    add({.name = "state of the whole model",
         .formula = "(2 + 2 + 4 + 4 + 4) P",
         .value = state,
         .unit = "GB",
         .plan = std::nullopt,
         .simulated = gigabytes(peak.weights + peak.gradients + peak.optimizer),
         .simulated_unit = "GB a GPU of this plan",
         .note = fmt::format("weights {:.0f}, gradients {:.0f}, master {:.0f}, moments {:.0f} and "
                             "{:.0f}; accumulating gradients in fp32 makes it 18 a parameter",
                             parameters_ * 2e-9, parameters_ * 2e-9, parameters_ * 4e-9,
                             parameters_ * 4e-9, parameters_ * 4e-9)});
    add({.name = "state a GPU, all shared out",
         .formula = "16 P / N",
         .value = state / gpus_,
         .unit = "GB",
         .plan = std::nullopt,
         .simulated = gigabytes(peak.peak),
         .simulated_unit =
             fmt::format("GB at the peak, {} of activations", to_text(peak.activations)),
         .note = "leaves out activations, gathered layers, logits, buffers"});
    add({.name = "GPUs that hold the state",
         .formula = "16 P / memory",
         .value = static_cast<double>(least_gpus_for_state(parameters_, base_.profile.hbm)),
         .unit = "GPUs",
         .plan = gpus_,
         .simulated = std::nullopt,
         .simulated_unit = "",
         .note = ""});
    add({.name = "largest model on one GPU",
         .formula = "memory / 16",
         .value = largest_model_parameters(base_.profile.hbm) * 1e-9,
         .unit = "1e9 parameters",
         .plan = parameters_ * 1e-9,
         .simulated = std::nullopt,
         .simulated_unit = "",
         .note = "before any activation"});
  }

  bool crosses_hosts() const { return base_.gpus > base_.cluster.gpus_per_host; }
  double fsdp_alpha() const { return crosses_hosts() ? nic_ : nvlink_; }

  void add_bounds() {
    add({.name = "FLOPs a byte over NVLink",
         .formula = "C / W",
         .value = nvlink_,
         .unit = "",
         .plan = std::nullopt,
         .simulated = std::nullopt,
         .simulated_unit = "",
         .note = fmt::format("one direction, as the NIC's; counting both, as data sheets do, gives "
                             "{:.0f}",
                             nvlink_ / 2)});
    add({.name = "FLOPs a byte over the NIC",
         .formula = "C / W",
         .value = nic_,
         .unit = "",
         .plan = std::nullopt,
         .simulated = std::nullopt,
         .simulated_unit = "",
         .note = ""});
    const double ranks = gpus_ / static_cast<double>(plan_.tp * plan_.pp);
    add({.name = "tokens a data-parallel rank, DP or FSDP",
         .formula = "B / X > C / W",
         .value = data_parallel_tokens_bound(fsdp_alpha()),
         .unit = "tokens",
         .plan = tokens_ / ranks,
         .simulated = share(step_, TimeTerm::kExposedDp),
         .simulated_unit = "% waits for DP",
         .note = crosses_hosts() ? "across hosts the NIC carries it" : ""});
    add({.name = "ways of TP, most",
         .formula = "F > Y C / W",
         .value = tensor_parallel_limit(ffn_, nvlink_),
         .unit = "ways",
         .plan = static_cast<double>(plan_.tp),
         .simulated = share(step_, TimeTerm::kExposedTp),
         .simulated_unit = "% waits for TP",
         .note = "assumes every transfer hides behind products; a stack that waits for it loses "
                 "its time at any width"});
    add({.name = "tokens a GPU, FSDP + TP",
         .formula = "B / N > C^2 / (W_nic W_nvlink F)",
         .value = fsdp_and_tp_tokens_bound(fsdp_alpha(), nvlink_, ffn_),
         .unit = "tokens",
         .plan = tokens_ / gpus_,
         .simulated = share(step_, TimeTerm::kExposedDp) + share(step_, TimeTerm::kExposedTp),
         .simulated_unit = "% waits for DP and TP",
         .note =
             "FSDP runs on the NIC and TP on NVLink: one C / W squared would take both on one"});
    const MeshSplit split = optimal_split(tokens_, ffn_, gpus_, fsdp_alpha(), nvlink_);
    add({.name = "best ways of TP beside FSDP",
         .formula = "N / sqrt((B / F) N W_nic / W_nvlink)",
         .value = split.tp,
         .unit = "ways",
         .plan = static_cast<double>(plan_.tp),
         .simulated = std::nullopt,
         .simulated_unit = "",
         .note = fmt::format("FSDP {:.0f}; ways divide the GPUs, the batch and the heads, and TP "
                             "stays in a host of {}",
                             split.fsdp, base_.cluster.gpus_per_host)});
    add_pods();
  }

  void add_pods() {
    if (base_.gpus <= base_.cluster.gpus_per_pod) return;
    const auto in_pod = static_cast<double>(base_.cluster.gpus_per_pod);
    add({.name = "tokens a pod, DP between pods",
         .formula = "B / pods > C / W_uplink",
         .value = data_parallel_tokens_bound(nic_ * base_.cluster.pod_oversubscription),
         .unit = "tokens",
         .plan = tokens_ * in_pod / gpus_,
         .simulated = share(step_, TimeTerm::kExposedDp),
         .simulated_unit = "% waits for DP",
         .note = fmt::format("a GPU's share of the uplinks is its NIC over {:.3g}; a ring enters "
                             "and leaves a pod once",
                             base_.cluster.pod_oversubscription)});
  }

  int64_t micro_batches() const {
    return base_.training.global_batch / (plan_.dp * plan_.micro_batch);
  }

  void add_pipeline() {
    if (plan_.pp == 1) return;
    const int64_t m = micro_batches();
    const auto bubble = [&](int64_t v) { return 100 * bubble_share(plan_.pp, m, v); };
    add({.name = fmt::format("bubble of {} stages, {} micro-batches", plan_.pp, m),
         .formula = fmt::format("(p - 1) / (p - 1 + {} m)", plan_.virtual_stages),
         .value = bubble(plan_.virtual_stages),
         .unit = "%",
         .plan = std::nullopt,
         .simulated = 100 * step_.bubble_fraction(),
         .simulated_unit = "% of the step",
         .note = "a fill of equal chunks; embedding, head and transfers add to it, schedules that "
                 "split the backward pass take from it"});
    std::string others;
    for (int64_t v = 1; v * plan_.pp <= base_.model.layers + 2; v *= 2) {
      others += fmt::format("{}v{} {:.1f} %", others.empty() ? "" : ", ", v, bubble(v));
    }
    sheet_.rows.back().note += ". By virtual stages: " + others;
    add_own_bubble(bubble(plan_.virtual_stages));
  }

  // Of schedules that the textbook's form is not of.
  void add_own_bubble(double textbook) {
    const ScheduleRow& schedule = *best_.candidate.schedule;
    const double own = schedule.bubble_bound(
        schedule_shape(plan_, {.sequence_length = base_.training.sequence_length,
                               .global_batch = base_.training.global_batch}));
    const double percent = 100 * own / (1 + own);
    if (std::abs(percent - textbook) < 1e-6) return;
    add({.name = fmt::format("bubble of {}", schedule.name),
         .formula = "the schedule's own closed form",
         .value = percent,
         .unit = "%",
         .plan = std::nullopt,
         .simulated = 100 * step_.bubble_fraction(),
         .simulated_unit = "% of the step",
         .note = "each half of a backward pass as long as a forward pass, transfers free"});
  }

  // Only the bubble changes when the same batch is spread over more pipelines.
  void add_scaling() {
    const ParallelPlan& before = first_->candidate.plan;
    if (before.pp != plan_.pp || before.virtual_stages != plan_.virtual_stages || plan_.pp == 1) {
      return;
    }
    const int64_t fewer = micro_batches();
    const int64_t more = first_->step.tokens_per_step / base_.training.sequence_length /
                         (before.dp * before.micro_batch);
    add({.name = fmt::format("throughput a GPU over {} GPUs'", count_text(first_->step.gpus)),
         .formula = fmt::format("(1 + b({})) / (1 + b({})), b = (p - 1) / ({} m)", more, fewer,
                                plan_.virtual_stages),
         .value = 100 * bubble_slowdown(plan_.pp, more, fewer, plan_.virtual_stages),
         .unit = "%",
         .plan = std::nullopt,
         .simulated =
             100 * step_.tokens_per_second_per_gpu() / first_->step.tokens_per_second_per_gpu(),
         .simulated_unit = "%",
         .note = fmt::format("the bubble alone; without interleaving it would be {:.1f} %",
                             100 * bubble_slowdown(plan_.pp, more, fewer, 1))});
  }

  void decide() {
    std::vector<std::string>& d = sheet_.decision;
    const double memory = static_cast<double>(base_.profile.hbm.count()) * 1e-9;
    const double state = parameters_ * 16e-9;
    d.push_back(fmt::format(
        "state of {} GB on a GPU of {:.1f} GB: {}", number_text(state), memory,
        state < memory ? "fits, so plain data parallel will do" : "does not fit, so FSDP"));
    if (state < memory) return;
    const double have = tokens_ / gpus_;
    const double alone = data_parallel_tokens_bound(fsdp_alpha());
    d.push_back(fmt::format("FSDP alone needs {} tokens a GPU and has {}: {}", number_text(alone),
                            number_text(have),
                            have > alone ? "compute-bound, done" : "communication-bound, so TP"));
    if (have > alone) return;
    const double both = fsdp_and_tp_tokens_bound(fsdp_alpha(), nvlink_, ffn_);
    d.push_back(fmt::format("FSDP + TP needs {} and has {}: {}", number_text(both),
                            number_text(have),
                            have > both ? "compute-bound, done"
                                        : "communication-bound, so pipeline stages, or more "
                                          "tokens a step"));
  }

  const Scenario& base_;  // All outlive this object.
  const RankedPlan& best_;
  const ParallelPlan& plan_;
  const StepResult& step_;
  const PlanCost* cost_;
  const RankedPlan* first_;
  double nvlink_ = 0, nic_ = 0, tokens_ = 0, gpus_ = 0, ffn_ = 0, parameters_ = 0;
  FormulaSheet sheet_;
};

std::string with_unit(const std::string& number, const std::string& unit) {
  return unit.empty() ? number : number + ' ' + unit;
}

}  // namespace

FormulaSheet formula_sheet(const Scenario& base, const RankedPlan& best, const PlanCost* cost,
                           const RankedPlan* first) {
  return Sheet(base, best, cost, first).fill();
}

std::string formula_table(const FormulaSheet& sheet) {
  std::string text =
      fmt::format("  closed forms of {} GPUs beside {}\n", count_text(sheet.gpus), sheet.plan);
  for (const FormulaRow& row : sheet.rows) {
    text += fmt::format("  {:<42} {:>22}   {}\n", row.name,
                        with_unit(number_text(row.value), row.unit), row.formula);
    if (row.plan) {
      text += fmt::format("  {:<42} {:>22}\n", "    this plan has",
                          with_unit(number_text(*row.plan), row.unit));
    }
    if (row.simulated) {
      text += fmt::format("  {:<42} {:>22}   {}\n", "    simulated", number_text(*row.simulated),
                          row.simulated_unit);
    }
    if (!row.note.empty()) text += fmt::format("      {}\n", row.note);
  }
  text += "  the whiteboard decides\n";
  for (const std::string& step : sheet.decision) text += "    " + step + '\n';
  return text;
}

}  // namespace herdsim
