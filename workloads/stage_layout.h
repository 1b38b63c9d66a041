// How the layers of a model lie on pipeline stages: what each local chunk of each stage holds.
//
// A model chunk holds a run of consecutive layers; the first also the embedding, the last the final
// norm and the head. `layout_stages` spreads L layers over C model chunks:
//   C divides L          L / C each
//   C divides L + 2      (L + 2) / C each, one layer less on the first and the last, which have the
//   embedding and the head
//                        to compute instead: Llama 3 405B has 126 layers for 16 x 8 chunks, so its
//                        first chunk is the embedding alone and its last the head alone
//   otherwise            L / C rounded down each; the rest go one each to the chunks in the middle,
//   so that the first and
//                        the last are never the heavier ones
//
//   layout_stages(llama3_405b, {.pp = 16, .virtual_stages = 8},
//   *find_schedule("interleaved-1f1b"))[0].layers
//     -> {0, 1, 1, 1, 1, 1, 1, 1}
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "sim/base/error.h"
#include "sim/models/software_stack.h"
#include "workloads/model_architecture.h"
#include "workloads/parallel_plan.h"
#include "workloads/schedules/schedule.h"

namespace herdsim {

struct StageLayout {
  std::vector<int64_t> layers;             // by local chunk
  std::vector<int64_t> first_layer;        // of the model, by local chunk
  std::optional<int64_t> embedding_chunk;  // the local chunk that holds the embedding, if one does
  std::optional<int64_t> head_chunk;       // and the final norm and the head

  int64_t total_layers() const;
};

// Adds a fault where a chunk would hold nothing at all: fewer layers than chunks, beyond the first
// and the last.
void validate_stage_layout(const ModelArchitecture& model, const ParallelPlan& plan,
                           const ScheduleRow& row, Faults& faults);

// By stage. Requires: a plan validate_stage_layout() has no fault with.
// Ensures: the layers of all model chunks sum to the model's; a bidirectional schedule holds each
// twice.
std::vector<StageLayout> layout_stages(const ModelArchitecture& model, const ParallelPlan& plan,
                                       const ScheduleRow& row);

// Micro-batches, the first ones, whose weight gradients of the head the last stage makes after its
// passes (SoftwareStack::head_weight_gradients_deferred): none on a single stage, where a schedule
// splits backward passes itself, where gradients are reduced after each pass, or for a mixture of
// experts, of which no published recipe asks for it.
int64_t deferred_head_gradients(const ModelArchitecture& model, const SoftwareStack& software,
                                const ParallelPlan& plan, const ScheduleRow& row,
                                int64_t micro_batches);

// For plan.layers_per_chunk: nanotron's split by the cost of the matrices, the head counting as V h
// / (4 q h + 3 h f) layers. Layers go to a chunk until its share of the total is exceeded, so that
// 28 layers with a head of 3.6 on 4 stages lie 8, 8, 8, 4 (`build_model` in
// nanotron/models/base.py).
std::vector<int64_t> layers_by_cost(const ModelArchitecture& model, int64_t chunks);

}  // namespace herdsim
