// A row of a run table as a scenario: the same values a scenario file would resolve to, without the
// text.
//
// A blank takes the documented default and is named in `assumed`:
//   kv_heads          heads
//   head_dim          hidden / heads
//   mlp_gated         1
//   tp, pp            1; where neither is stated and a GPU does not hold the model, the least that
//                     does (assumed_plan.h)
//   cp, ep            1
//   sp                where tp > 1: as the software stack (software.sequence_parallel), and 1 with experts
//   dp                num_gpus / (tp cp pp)
//   vp                Megatron with pp > 1, but megatron-deepspeed: as many as divide the layers of a
//                     stage and the schedule takes, but 1 where pp_schedule is "1F1B"; torch-fsdp2: 2 where it is
//                     interleaved; otherwise 1
//   layers_per_stage  even; nanotron: by cost
//   micro_batch       1; torch-fsdp2 with pp > 1: as many micro-batches as stages, as torchtitan
//   makes them; megatron-2021: 2
//                     with pp > 1 and else 4, where that leaves whole rounds of the stages
//   gpus_per_node     8
//   precision         bf16
//   recompute         none; JAX: attention and what norms and activations make
//   attention_kernel  the software stack's
//   overlap_notes     torch-fsdp2: "torch-fsdp2-eager", as torch.compile is off unless asked
//   fsdp_zero         ZeRO-1; FSDP stacks and JAX: ZeRO-3
// The network is that of one non-blocking pod with 400 Gb/s a GPU (200 Gb/s on A100 and A800),
// unless `interconnect` states another or the run measured its own; NVLink joins a node, or up to
// 72 GPUs of a GB200's or GB300's rack. FSDP2 under a pipeline keeps parameters gathered. GPUs with
// a power limit of their own clock as what they do takes power (row_clock.h). A vocabulary that tp
// does not divide is padded, as Megatron does. What a source is known to have run beside its
// columns, or against them, is in source_facts.h; it is named in `assumed` with where it is said.
//
// Sizes of the model that are blank are those of the catalogue's model of that name, if there is
// one. A row is left out for a named reason only: a size without which there is no model, a GPU
// without a profile, a software stack without a record, experts that nothing describes, or a plan
// that no schedule can run.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/scenario/scenario.h"
#include "tools/validation/run_table.h"

namespace herdsim {

// What rows refer to, loaded once: read-only, so any thread may use it.
class RowParts {
 public:
  // `sets` change every software stack: "software.clock_factor=0.97", as --set does for a scenario.
  // Throws: SpecError for a set that is none of a software stack.
  explicit RowParts(const std::vector<std::string>& sets);

  const SoftwareStack* software(const std::string& name) const;  // null where there is no record
  // The catalogue's model whose name the text begins with, written in any way; null where there is none.
  const ModelArchitecture* model(std::string_view name) const;
  const DeviceProfile& profile(const std::string& name) const { return profiles_.at(name); }
  // Of a software stack, without "software.".
  const std::vector<std::string>& software_sets() const { return software_sets_; }

 private:
  std::vector<std::string> software_sets_;
  std::map<std::string, SoftwareStack, std::less<>> software_;
  std::map<std::string, DeviceProfile, std::less<>> profiles_;
  std::map<std::string, ModelArchitecture, std::less<>> models_;  // by letters and digits
};

// Of GPUs with a lower power limit than their profile's.
struct PowerCap {
  double usual_watts = 0, watts = 0;
  double clock_factor = 1;  // in scenario.software.clock_factor
};

struct RowScenario {
  Scenario scenario;                 // means something where skipped_because is empty
  std::optional<PowerCap> power_cap;
  std::vector<std::string> assumed;  // "kv_heads = 32"
  std::string skipped_because;
};

// `software_sets` are more of them, for this row.
RowScenario scenario_of_row(const RunRow& row, const RowParts& parts,
                            const std::vector<std::string>& software_sets = {});

// Whether one of "logit_bytes=52", ... sets this field.
bool is_set(const std::vector<std::string>& sets, std::string_view field);

}  // namespace herdsim
