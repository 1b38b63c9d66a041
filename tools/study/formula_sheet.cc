#include "tools/study/formula_sheet.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "sim/base/text.h"
#include "tools/study/closed_forms.h"
#include "tools/study/number_text.h"
#include "workloads/lowering.h"

namespace herdsim {
namespace {

double share(const StepResult& step, TimeTerm term) {
  return 100 * step.time_account_seconds()[static_cast<size_t>(term)] / step.step_time.seconds();
}

double gigabytes(Bytes bytes) { return static_cast<double>(bytes.count()) * 1e-9; }

class Sheet {
 public:
  Sheet(const Scenario& base, const PlanCandidate& candidate) : base_(base), plan_(candidate.plan) {
    const FlopRate peak = base.profile.peak_of(base.training.precision);
    nvlink_ = flops_per_byte(peak, base.cluster.nvlink);
    nic_ = flops_per_byte(peak, base.cluster.nic);
    tokens_ = static_cast<double>(base.training.tokens());
    gpus_ = static_cast<double>(base.gpus);
    ffn_ = static_cast<double>(base.model.ffn);
    parameters_ = static_cast<double>(base.model.parameters());
    sheet_.gpus = base.gpus;
  }
  // What was simulated; null: nothing.
  void beside(const RankedPlan* best, const PlanCost* cost, const RankedPlan* first) {
    best_ = best;
    step_ = &best->step;
    cost_ = cost;
    first_ = first;
    sheet_.plan = best->candidate.text();
    has_plan_ = true;
  }
  void with_sketch(std::string text) {
    sheet_.plan = std::move(text);
    has_plan_ = true;
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
  std::optional<double> of_plan(double value) const {
    return has_plan_ ? std::optional(value) : std::nullopt;
  }
  std::optional<double> waits_for(TimeTerm term) const {
    return step_ != nullptr ? std::optional(share(*step_, term)) : std::nullopt;
  }

  void add_work() {
    const double tokens = cost_ != nullptr ? cost_->tokens : tokens_;
    const double flops = training_flops(active_parameters(base_.model), tokens);
    const ModelFlops counted = model_flops(base_.model, base_.training);
    const double causal = static_cast<double>(counted.causal.count()) * tokens / tokens_;
    const double full = static_cast<double>(counted.full.count()) * tokens / tokens_;
    add({.name = cost_ != nullptr ? "FLOPs of the training" : "FLOPs of a step",
         .formula = base_.model.is_moe() ? "6 P T, P as a token visits" : "6 P T",
         .value = flops,
         .simulated = step_ != nullptr ? std::optional(causal) : std::nullopt,
         .simulated_unit = "with causal attention",
         .note = fmt::format("with causal attention of {} tokens {:+.1f} %, with the full square "
                             "{:+.1f} %; the input embedding, a look-up, does not count there",
                             count_text(base_.training.sequence_length), 100 * (causal / flops - 1),
                             100 * (full / flops - 1))});
    if (cost_ == nullptr) return;
    const double rate = step_->mfu_causal() * step_->peak.per_second();
    add({.name = "days at the simulated MFU",
         .formula = "6 P T / (N C MFU)",
         .value = training_days(flops, gpus_, rate),
         .unit = "d",
         .simulated = cost_->days,
         .simulated_unit = "with failures",
         .note = fmt::format("the whiteboard has no attention, and no failures: effective training "
                             "time is {:.1f} %",
                             100 * cost_->effective_training_time)});
    add({.name = "GPU-hours",
         .formula = "days 24 N",
         .value = training_days(flops, 1, rate) * 24,
         .unit = "h",
         .simulated = cost_->gpu_hours,
         .simulated_unit = "with failures"});
  }

  void add_memory() {
    const StateLedger ledger;
    const double state = parameters_ * ledger.bytes_a_parameter() * 1e-9;
    const StageMemory* peak = step_ != nullptr ? step_->peak_stage() : nullptr;
    add({.name = "state of the whole model",
         .formula = "(2 + 2 + 4 + 4 + 4) P",
         .value = state,
         .unit = "GB",
         .simulated = peak != nullptr ? std::optional(gigabytes(peak->weights + peak->gradients +
                                                                peak->optimizer))
                                      : std::nullopt,
         .simulated_unit = "GB a GPU of this plan",
         .note = fmt::format("weights {:.0f}, gradients {:.0f}, master {:.0f}, moments {:.0f} and "
                             "{:.0f}; accumulating gradients in fp32 makes it 18 a parameter",
                             parameters_ * 2e-9, parameters_ * 2e-9, parameters_ * 4e-9,
                             parameters_ * 4e-9, parameters_ * 4e-9)});
    const double shards = has_plan_ ? static_cast<double>(plan_.ranks()) : gpus_;
    add({.name = "state a GPU, all shared out",
         .formula = "16 P / N",
         .value = state / shards,
         .unit = "GB",
         .simulated = peak != nullptr ? std::optional(gigabytes(peak->peak)) : std::nullopt,
         .simulated_unit = peak != nullptr ? fmt::format("GB at the peak, {} of activations",
                                                         to_text(peak->activations))
                                           : "",
         .note = fmt::format("weights and master {} MB, gradients {}, moments {}; leaves out "
                             "activations, gathered layers, logits, buffers",
                             number_text(parameters_ * 6e-6 / shards),
                             number_text(parameters_ * 2e-6 / shards),
                             number_text(parameters_ * 8e-6 / shards))});
    if (has_plan_) {
      const auto ranks = static_cast<double>(plan_.dp * plan_.cp);
      add({.name = "activations a GPU",
           .formula = "4 (B / X) D L / Y",
           .value = 4 * tokens_ / ranks * static_cast<double>(base_.model.hidden) *
                    static_cast<double>(base_.model.layers) /
                    static_cast<double>(plan_.tp * plan_.pp) * 1e-9,
           .unit = "GB",
           .simulated =
               peak != nullptr ? std::optional(gigabytes(peak->activations)) : std::nullopt,
           .simulated_unit = "GB at the peak",
           .note = "two bf16 tensors of the hidden width a layer, the batch in one piece"});
    }
    add({.name = "GPUs that hold the state",
         .formula = "16 P / memory",
         .value = static_cast<double>(least_gpus_for_state(parameters_, base_.profile.hbm)),
         .unit = "GPUs",
         .plan = of_plan(gpus_)});
    add({.name = "largest model on one GPU",
         .formula = "memory / 16",
         .value = largest_model_parameters(base_.profile.hbm) * 1e-9,
         .unit = "1e9 parameters",
         .plan = parameters_ * 1e-9,
         .note = "before any activation"});
  }

  bool crosses_hosts() const { return base_.gpus > base_.cluster.gpus_per_host; }
  double fsdp_alpha() const { return crosses_hosts() ? nic_ : nvlink_; }

  void add_bounds() {
    const double both_ways = nvlink_ / 2;
    add({.name = "FLOPs a byte over NVLink",
         .formula = "C / W",
         .value = nvlink_,
         .note = fmt::format("one direction, as the NIC's; counting both, as data sheets do, gives "
                             "{}",
                             number_text(both_ways))});
    add({.name = "FLOPs a byte over the NIC", .formula = "C / W", .value = nic_});
    const double ranks = gpus_ / static_cast<double>(plan_.tp * plan_.pp);
    add({.name = "tokens a data-parallel rank, DP or FSDP",
         .formula = "B / X > C / W",
         .value = data_parallel_tokens_bound(fsdp_alpha()),
         .unit = "tokens",
         .plan = tokens_ / ranks,
         .simulated = waits_for(TimeTerm::kExposedDp),
         .simulated_unit = "% waits for DP",
         .note =
             crosses_hosts()
                 ? fmt::format("across hosts the NIC carries it; {} a GPU where a "
                               "host of {} with a NIC each is one rank",
                               number_text(nic_ / static_cast<double>(base_.cluster.gpus_per_host)),
                               base_.cluster.gpus_per_host)
                 : ""});
    add({.name = "ways of TP, most",
         .formula = "F > Y C / W",
         .value = tensor_parallel_limit(ffn_, nvlink_),
         .unit = "ways",
         .plan = of_plan(static_cast<double>(plan_.tp)),
         .simulated = waits_for(TimeTerm::kExposedTp),
         .simulated_unit = "% waits for TP",
         .note = fmt::format("{} if NVLink counted both ways; 16 ways over the NIC need F > {}. "
                             "Every transfer is to hide behind products: a stack that waits for it "
                             "loses its time at any width",
                             number_text(tensor_parallel_limit(ffn_, both_ways)),
                             count_text(std::llround(tensor_parallel_least_ffn(16, nic_))))});
    add_split();
    add_pods();
  }

  void add_split() {
    const double both_ways = nvlink_ / 2;
    const auto waits_both = [&]() -> std::optional<double> {
      if (step_ == nullptr) return std::nullopt;
      return share(*step_, TimeTerm::kExposedDp) + share(*step_, TimeTerm::kExposedTp);
    };
    add({.name = "tokens a GPU, FSDP + TP",
         .formula = "B / N > C^2 / (W_nic W_nvlink F)",
         .value = fsdp_and_tp_tokens_bound(fsdp_alpha(), nvlink_, ffn_),
         .unit = "tokens",
         .plan = tokens_ / gpus_,
         .simulated = waits_both(),
         .simulated_unit = "% waits for DP and TP",
         .note = fmt::format(
             "FSDP runs on the NIC and TP on NVLink. One C / W squared takes both on one: {} on "
             "NVLink both ways over two mesh axes; {} with the NIC and NVLink both ways",
             number_text(fsdp_and_tp_tokens_bound(both_ways, both_ways, ffn_, 2)),
             number_text(fsdp_and_tp_tokens_bound(nic_, both_ways, ffn_)))});
    const MeshSplit split = optimal_split(tokens_, ffn_, gpus_, fsdp_alpha(), nvlink_);
    const MeshSplit one_link = optimal_split(tokens_, ffn_, gpus_, 1, 1, 2);
    add({.name = "best ways of TP beside FSDP",
         .formula = "N / sqrt((B / F) N W_nic / W_nvlink)",
         .value = split.tp,
         .unit = "ways",
         .plan = of_plan(static_cast<double>(plan_.tp)),
         .note = fmt::format("FSDP {}; {} were both on one kind of link, FSDP on two of its axes. "
                             "Ways divide the GPUs, the batch and the heads, and TP stays in a "
                             "host of {}",
                             number_text(split.fsdp), number_text(one_link.fsdp),
                             base_.cluster.gpus_per_host)});
  }

  void add_pods() {
    if (base_.gpus <= base_.cluster.gpus_per_pod) return;
    const auto in_pod = static_cast<double>(base_.cluster.gpus_per_pod);
    add({.name = "tokens a pod, DP between pods",
         .formula = "B / pods > C / W_uplink",
         .value = data_parallel_tokens_bound(nic_ * base_.cluster.pod_oversubscription),
         .unit = "tokens",
         .plan = tokens_ * in_pod / gpus_,
         .simulated = waits_for(TimeTerm::kExposedDp),
         .simulated_unit = "% waits for DP",
         .note = fmt::format("a GPU's share of the uplinks is its NIC over {:.3g}; a ring enters "
                             "and leaves a pod once",
                             base_.cluster.pod_oversubscription)});
  }

  int64_t micro_batches() const {
    return base_.training.global_batch / (plan_.dp * plan_.micro_batch);
  }

  void add_pipeline() {
    const int64_t m = micro_batches();
    if (plan_.pp == 1 || m == 0) return;
    const auto bubble = [&](int64_t v) { return 100 * bubble_share(plan_.pp, m, v); };
    std::string others;
    for (int64_t v = 1; v * plan_.pp <= base_.model.layers + 2; v *= 2) {
      others += fmt::format("{}v{} {:.1f} %", others.empty() ? "" : ", ", v, bubble(v));
    }
    add({.name = fmt::format("bubble of {} stages, {} micro-batches", plan_.pp, m),
         .formula = fmt::format("(p - 1) / (p - 1 + {} m)", plan_.virtual_stages),
         .value = bubble(plan_.virtual_stages),
         .unit = "%",
         .simulated =
             step_ != nullptr ? std::optional(100 * step_->bubble_fraction()) : std::nullopt,
         .simulated_unit = "% of the step",
         .note = "a fill of equal chunks; embedding, head and transfers add to it, schedules that "
                 "split the backward pass take from it. By virtual stages: " +
                 others});
    if (best_ != nullptr) add_own_bubble(bubble(plan_.virtual_stages));
  }

  // Of schedules that the textbook's form is not of.
  void add_own_bubble(double textbook) {
    const ScheduleRow& schedule = *best_->candidate.schedule;
    const double own = schedule.bubble_bound(
        schedule_shape(plan_, {.sequence_length = base_.training.sequence_length,
                               .global_batch = base_.training.global_batch}));
    const double percent = 100 * own / (1 + own);
    if (std::abs(percent - textbook) < 1e-6) return;
    add({.name = fmt::format("bubble of {}", schedule.name),
         .formula = "the schedule's own closed form",
         .value = percent,
         .unit = "%",
         .simulated = 100 * step_->bubble_fraction(),
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
         .simulated =
             100 * step_->tokens_per_second_per_gpu() / first_->step.tokens_per_second_per_gpu(),
         .simulated_unit = "%",
         .note = fmt::format("the bubble alone; without interleaving it would be {:.1f} %",
                             100 * bubble_slowdown(plan_.pp, more, fewer, 1))});
  }

  // Fits one GPU? Else FSDP; else FSDP + TP; else pipeline stages.
  void decide() {
    std::vector<Decision>& d = sheet_.decision;
    const double memory = gigabytes(base_.profile.hbm);
    const double state = parameters_ * 16e-9;
    PlanPins pins{.tp = 1, .cp = 1, .pp = 1};
    pins.shard = Sharding::kNone;
    const bool fits = state < memory;
    d.push_back(
        {fmt::format("plain data parallel: {} GB of state on a GPU of {:.1f} GB {}",
                     number_text(state), memory, fits ? "fit, done" : "do not fit, so FSDP"),
         pins});
    if (fits) return;
    pins.shard = Sharding::kZero3;
    const double have = tokens_ / gpus_;
    const double alone = data_parallel_tokens_bound(fsdp_alpha());
    d.push_back({fmt::format("FSDP alone needs {} tokens a GPU and has {}: {}", number_text(alone),
                             number_text(have),
                             have > alone ? "compute-bound, done" : "communication-bound, so TP"),
                 pins});
    if (have > alone) return;
    pins.tp.reset();
    const double both = fsdp_and_tp_tokens_bound(fsdp_alpha(), nvlink_, ffn_);
    d.push_back(
        {fmt::format("FSDP + TP needs {} and has {}: {}", number_text(both), number_text(have),
                     have > both ? "compute-bound, done"
                                 : "communication-bound, so pipeline stages, or more "
                                   "tokens a step"),
         pins});
  }

  const Scenario& base_;  // All outlive this object.
  const ParallelPlan plan_;
  const RankedPlan* best_ = nullptr;
  const StepResult* step_ = nullptr;
  const PlanCost* cost_ = nullptr;
  const RankedPlan* first_ = nullptr;
  bool has_plan_ = false;
  double nvlink_ = 0, nic_ = 0, tokens_ = 0, gpus_ = 0, ffn_ = 0, parameters_ = 0;
  FormulaSheet sheet_;
};

// What `pins` say of a plan.
ParallelPlan sketch_of(const Scenario& base, const PlanPins& pins) {
  ParallelPlan plan;
  plan.tp = pins.tp.value_or(1);
  plan.cp = pins.cp.value_or(1);
  plan.pp = pins.pp.value_or(1);
  plan.dp = pins.dp.value_or(std::max<int64_t>(1, base.gpus / (plan.tp * plan.cp * plan.pp)));
  plan.virtual_stages = pins.virtual_stages.value_or(1);
  plan.micro_batch = pins.micro_batch.value_or(1);
  return plan;
}

}  // namespace

double active_parameters(const ModelArchitecture& model) {
  return static_cast<double>(model.parameters() - model.matrix_parameters() +
                             model.active_matrix_parameters());
}

FormulaSheet formula_sheet(const Scenario& base, const RankedPlan& best, const PlanCost* cost,
                           const RankedPlan* first) {
  Sheet sheet(base, best.candidate);
  sheet.beside(&best, cost, first);
  return sheet.fill();
}

FormulaSheet whiteboard_sheet(const Scenario& base, const PlanPins& pins) {
  PlanCandidate candidate;
  candidate.plan = sketch_of(base, pins);
  Sheet sheet(base, candidate);
  if (pins.tp || pins.cp || pins.pp || pins.dp) {
    const ParallelPlan& p = candidate.plan;
    std::string text = fmt::format("TP{} CP{} PP{} DP{}", p.tp, p.cp, p.pp, p.dp);
    if (p.ranks() != base.gpus) {
      text += fmt::format(", which is {} GPUs", count_text(p.ranks()));
    }
    sheet.with_sketch(std::move(text));
  }
  return sheet.fill();
}

}  // namespace herdsim
