// Jobs of which tests ask what they keep in memory.
#pragma once

#include <algorithm>
#include <vector>

#include "workloads/memory/memory_footprint.h"

namespace herdsim {

inline ModelArchitecture model_of(int64_t layers, int64_t hidden, int64_t ffn, int64_t heads,
                           int64_t kv_heads, int64_t vocab) {
  ModelArchitecture m;
  m.layers = layers;
  m.hidden = hidden;
  m.ffn = ffn;
  m.heads = heads;
  m.kv_heads = kv_heads;
  m.head_dim = hidden / heads;
  m.vocab = vocab;
  return m;
}

inline const ModelArchitecture kLlama405 = model_of(126, 16384, 53248, 128, 8, 128256);
inline const ModelArchitecture kLlama70 = model_of(80, 8192, 28672, 64, 8, 128256);

// A question that owns what it asks about.
struct Job {
  ModelArchitecture model = model_of(32, 4096, 11008, 32, 32, 32000);
  ParallelPlan plan;
  Training training{.sequence_length = 4096, .global_batch = 8};
  SoftwareStack software;
  MemoryAssumptions assumptions;

  ScheduleShape shape() const {
    return {plan.pp, training.global_batch / (plan.dp * plan.micro_batch), plan.virtual_stages,
            training.consecutive_micro_batches};
  }
  std::vector<StageMemory> memory() const {
    const ScheduleRow& row = *find_schedule(training.schedule);
    const ScheduleShape s = shape();
    Faults faults;
    row.validate(s, faults);
    validate_stage_layout(model, plan, row, faults);
    faults.throw_if_any();
    const std::vector<StageLayout> layouts = layout_stages(model, plan, row);
    return memory_footprint({model, plan, training, software, row, s, layouts, assumptions});
  }
  StageMemory peak() const {
    const std::vector<StageMemory> stages = memory();
    return *std::max_element(stages.begin(), stages.end(),
                             [](const auto& a, const auto& b) { return a.peak < b.peak; });
  }
};

}  // namespace herdsim
