#include "workloads/stage_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "sim/base/units.h"

namespace herdsim {
namespace {

// Where chunks lie depends on stages and virtual stages only.
ScheduleShape shape_of(const ParallelPlan& plan) {
  return {.stages = plan.pp, .micro_batches = 1, .virtual_stages = plan.virtual_stages};
}

// Layers by model chunk.
std::vector<int64_t> layers_of_chunks(int64_t layers, int64_t chunks) {
  if (layers % chunks != 0 && (layers + 2) % chunks == 0) {
    std::vector<int64_t> even(static_cast<size_t>(chunks), (layers + 2) / chunks);
    --even.front();
    --even.back();
    return even;
  }
  std::vector<int64_t> spread(static_cast<size_t>(chunks), layers / chunks);
  const int64_t rest = layers % chunks;
  const int64_t first = (chunks - rest) / 2;
  for (int64_t c = first; c < first + rest; ++c) ++spread[static_cast<size_t>(c)];
  return spread;
}

void validate_given_layers(const ModelArchitecture& model, const std::vector<int64_t>& layers,
                           int64_t chunks, Faults& faults) {
  const char* field = "parallel.layers_per_chunk";
  if (static_cast<int64_t>(layers.size()) != chunks) {
    faults.add({.field = field,
                .problem = fmt::format("{} entries", layers.size()),
                .allowed = fmt::format("{}, one a model chunk", chunks)});
  }
  const int64_t sum = std::accumulate(layers.begin(), layers.end(), int64_t{0});
  const bool negative = std::any_of(layers.begin(), layers.end(), [](int64_t l) { return l < 0; });
  if (sum != model.layers || negative) {
    faults.add(
        {.field = field,
         .problem =
             fmt::format("the entries sum to {}{}", sum, negative ? ", some of them negative" : ""),
         .allowed = fmt::format("numbers of layers that sum to the model's {}", model.layers)});
  }
}

}  // namespace

int64_t StageLayout::total_layers() const {
  return std::accumulate(layers.begin(), layers.end(), int64_t{0});
}

void validate_stage_layout(const ModelArchitecture& model, const ParallelPlan& plan,
                           const ScheduleRow& row, Faults& faults) {
  const int64_t chunks = model_chunks(row, shape_of(plan));
  if (!plan.layers_per_chunk.empty()) {
    validate_given_layers(model, plan.layers_per_chunk, chunks, faults);
    return;
  }
  if (model.layers >= chunks || (chunks > 2 && model.layers + 2 == chunks)) return;
  faults.add(
      {.field = "parallel.pp",
       .problem = fmt::format("{} layers do not fill {} stages of {} chunks", model.layers, plan.pp,
                              chunks_per_stage(row, shape_of(plan))),
       .allowed = fmt::format("at most {} model chunks, or {} with the embedding and the head "
                              "alone on the first and the last",
                              model.layers, model.layers + 2)});
}

std::vector<StageLayout> layout_stages(const ModelArchitecture& model, const ParallelPlan& plan,
                                       const ScheduleRow& row) {
  const ScheduleShape shape = shape_of(plan);
  const int64_t chunks = model_chunks(row, shape);
  const std::vector<int64_t> layers = plan.layers_per_chunk.empty()
                                          ? layers_of_chunks(model.layers, chunks)
                                          : plan.layers_per_chunk;
  std::vector<int64_t> first_layer(layers.size(), 0);
  std::partial_sum(layers.begin(), layers.end() - 1, first_layer.begin() + 1);
  std::vector<StageLayout> stages(static_cast<size_t>(plan.pp));
  for (int64_t stage = 0; stage < plan.pp; ++stage) {
    StageLayout& layout = stages[static_cast<size_t>(stage)];
    for (int64_t chunk = 0; chunk < chunks_per_stage(row, shape); ++chunk) {
      const int64_t model_chunk = model_chunk_at(row, shape, {stage, chunk});
      layout.layers.push_back(layers[static_cast<size_t>(model_chunk)]);
      layout.first_layer.push_back(first_layer[static_cast<size_t>(model_chunk)]);
      if (model_chunk == 0) layout.embedding_chunk = chunk;
      if (model_chunk == chunks - 1) layout.head_chunk = chunk;
    }
  }
  return stages;
}

int64_t deferred_head_gradients(const ModelArchitecture& model, const SoftwareStack& software,
                                const ParallelPlan& plan, const ScheduleRow& row,
                                int64_t micro_batches) {
  const bool each_pass = plan.shard == Sharding::kZero2 || plan.shard == Sharding::kZero3;
  if (plan.pp == 1 || row.splits_backward || each_pass || model.is_moe()) return 0;
  return std::min(software.head_weight_gradients_deferred, micro_batches);
}

std::vector<int64_t> layers_by_cost(const ModelArchitecture& model, int64_t chunks) {
  // In integers: layer l ends chunk c where (l + 1) * cost * chunks >= total * (c + 1).
  const int64_t layer = 4 * model.query_width() * model.hidden + model.ffn_parameters();
  const int64_t total = model.layers * layer + model.embedding_parameters();
  std::vector<int64_t> layers(static_cast<size_t>(chunks), 0);
  size_t chunk = 0;
  for (int64_t l = 0; l < model.layers; ++l) {
    ++layers[chunk];
    const auto reached = static_cast<Int128>(l + 1) * layer * chunks;
    if (reached >= static_cast<Int128>(total) * static_cast<int64_t>(chunk + 1)) ++chunk;
  }
  return layers;
}

}  // namespace herdsim
