#include "tools/validation/row_schedule.h"

#include <fmt/format.h>

#include <cstdint>
#include <utility>

#include "sim/base/error.h"
#include "sim/base/text.h"
#include "workloads/schedules/schedule.h"
#include "workloads/stage_layout.h"

namespace herdsim {
namespace {

class ScheduleChoice {
 public:
  ScheduleChoice(const RunRow& row, const RowWords& words, Scenario& scenario, std::vector<std::string>& assumed)
      : row_(row), words_(words), s_(scenario), assumed_(assumed) {}

  void choose() {
    ParallelPlan& p = s_.plan;
    p.virtual_stages = 1;
    s_.training.schedule = "1f1b";
    if (p.pp == 1) return;
    if (named_schedule()) return;
    // DeepSpeed's pipeline has 1F1B alone.
    const bool megatron =
        (row_.software.starts_with("mega") || row_.software.starts_with("meta")) &&
        row_.software != "megatron-deepspeed";
    const auto stages_given = static_cast<int64_t>(words_.layers_per_stage.size());
    if (stages_given == p.pp && !row_.vp) {
      p.layers_per_chunk = words_.layers_per_stage;
      return;
    }
    if (row_.vp) {
      interleave(*row_.vp);
      if (p.virtual_stages != *row_.vp) assume(fmt::format("vp = {}", p.virtual_stages));
    } else if (is_fsdp2() && is_interleaved()) {
      interleave(2);  // torchtitan's default
      assume(fmt::format("vp = {}", p.virtual_stages));
    } else if (megatron && !words_.one_chunk_a_stage) {
      for (int64_t v = (s_.model.layers + p.pp - 1) / p.pp; v > 1; --v) {
        if (interleave(v)) break;
      }
      assume(fmt::format("vp = {}", p.virtual_stages));
    }
    if (stages_given > 0 && stages_given == p.pp * p.virtual_stages) {
      p.layers_per_chunk = words_.layers_per_stage;
    } else if (row_.software == "nanotron" && p.virtual_stages == 1) {
      p.layers_per_chunk = layers_by_cost(s_.model, p.pp);
    }
  }

 private:
  void assume(std::string what) { assumed_.push_back(std::move(what)); }
  bool is_fsdp2() const { return row_.software.starts_with("torch-fsdp2"); }
  bool is_interleaved() const { return lower_case(row_.pp_schedule).find("interleaved") != std::string::npos; }

  // "DualPipe", "ZB-V", "GPipe": a schedule that is neither 1F1B nor its interleaved form, in chunks of its own number.
  bool named_schedule() {
    const std::string asked = letters_and_digits(row_.pp_schedule);
    for (const std::string& name : schedule_names()) {
      if (asked.empty() || letters_and_digits(name) != asked || name == "1f1b" || name == "interleaved-1f1b") continue;
      for (const int64_t chunks : {row_.vp.value_or(1), int64_t{1}, int64_t{2}}) {
        if (take_schedule(name, chunks)) return true;
      }
      assume("pp_schedule = 1f1b");
    }
    return false;
  }

  // The interleaved schedule with `chunks` a stage.
  bool interleave(int64_t chunks) { return chunks > 1 && take_schedule("interleaved-1f1b", chunks); }

  // Takes a schedule with `chunks` a stage, if it can run this plan.
  bool take_schedule(const std::string& name, int64_t chunks) {
    ParallelPlan& p = s_.plan;
    const ParallelPlan before = p;
    p.virtual_stages = chunks;
    const ScheduleRow& row = *find_schedule(name);
    const int64_t together = p.dp * p.micro_batch;
    Faults faults;
    if (s_.training.global_batch % together == 0) {
      row.validate({.stages = p.pp,
                    .micro_batches = s_.training.global_batch / together,
                    .virtual_stages = chunks},
                   faults);
      if (faults.empty()) validate_stage_layout(s_.model, p, row, faults);
    }
    if (!faults.empty()) {
      p = before;
      return false;
    }
    s_.training.schedule = name;
    return true;
  }

  const RunRow& row_;
  const RowWords& words_;
  Scenario& s_;
  std::vector<std::string>& assumed_;
};

}  // namespace

void choose_schedule(const RunRow& row, const RowWords& words, Scenario& scenario, std::vector<std::string>& assumed) {
  ScheduleChoice(row, words, scenario, assumed).choose();
}

}  // namespace herdsim
