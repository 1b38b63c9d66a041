#include "workloads/stage_layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

namespace herdsim {
namespace {

ModelArchitecture model_of(int64_t layers) {
  ModelArchitecture model;
  model.layers = layers;
  return model;
}

TEST(StageLayout, llama_405b_has_the_embedding_and_the_head_alone_on_their_chunks) {
  ParallelPlan plan;
  plan.pp = 16;
  plan.virtual_stages = 8;
  const auto stages = layout_stages(model_of(126), plan, *find_schedule("interleaved-1f1b"));
  EXPECT_EQ(stages[0].layers, (std::vector<int64_t>{0, 1, 1, 1, 1, 1, 1, 1}));
  EXPECT_EQ(stages[0].embedding_chunk, 0);
  EXPECT_EQ(stages[7].layers, std::vector<int64_t>(8, 1));
  EXPECT_EQ(stages[7].embedding_chunk, std::nullopt);
  EXPECT_EQ(stages[15].layers, (std::vector<int64_t>{1, 1, 1, 1, 1, 1, 1, 0}));
  EXPECT_EQ(stages[15].head_chunk, 7);
}

TEST(StageLayout, layers_are_all_there_even_and_never_heavier_at_the_ends) {
  for (const ScheduleRow& row : schedules()) {
    for (const int64_t pp : {1, 2, 4, 8, 16}) {
      for (const int64_t v : {1, 2, 8}) {
        for (const int64_t layers : {16, 28, 30, 32, 80, 126}) {
          ParallelPlan plan;
          plan.pp = pp;
          plan.virtual_stages = row.uses_virtual_stages ? v : 1;
          Faults faults;
          validate_stage_layout(model_of(layers), plan, row, faults);
          row.validate(
              {.stages = pp, .micro_batches = 2 * pp, .virtual_stages = plan.virtual_stages},
              faults);
          if (!faults.empty()) continue;
          const auto stages = layout_stages(model_of(layers), plan, row);
          const ScheduleShape shape{.stages = pp, .virtual_stages = plan.virtual_stages};
          int64_t sum = 0, most = 0, least = layers;
          for (const StageLayout& stage : stages) {
            sum += stage.total_layers();
            most = std::max(most, *std::max_element(stage.layers.begin(), stage.layers.end()));
            least = std::min(least, *std::min_element(stage.layers.begin(), stage.layers.end()));
          }
          const int64_t copies = row.layout == ChunkLayout::kBidirectional ? 2 : 1;
          EXPECT_EQ(sum, copies * layers) << row.name << " pp " << pp << " v " << v;
          EXPECT_LE(most - least, 1) << row.name << " pp " << pp << " v " << v;
          const ChunkPlace last = place_of_chunk(row, shape, 0, model_chunks(row, shape) - 1);
          const StageLayout& end = stages[static_cast<size_t>(last.stage)];
          EXPECT_EQ(end.head_chunk, last.chunk) << row.name;
          EXPECT_LE(end.layers[static_cast<size_t>(last.chunk)],
                    std::max(least, (layers / model_chunks(row, shape))))
              << row.name << " pp " << pp << " v " << v << " layers " << layers;
          EXPECT_EQ(stages[0].embedding_chunk, 0) << row.name;
        }
      }
    }
  }
}

TEST(StageLayout, what_does_not_divide_goes_to_the_middle) {
  ParallelPlan plan;
  plan.pp = 8;
  const auto stages = layout_stages(model_of(28), plan, *find_schedule("1f1b"));
  std::vector<int64_t> layers;
  for (const StageLayout& stage : stages) layers.push_back(stage.total_layers());
  EXPECT_EQ(layers, (std::vector<int64_t>{3, 3, 4, 4, 4, 4, 3, 3}));
}

TEST(StageLayout, a_v_has_both_ends_on_the_first_stage) {
  ParallelPlan plan;
  plan.pp = 4;
  const auto stages = layout_stages(model_of(32), plan, *find_schedule("zb-v"));
  EXPECT_EQ(stages[0].embedding_chunk, 0);
  EXPECT_EQ(stages[0].head_chunk, 1);
  EXPECT_EQ(stages[3].head_chunk, std::nullopt);
}

TEST(StageLayout, given_layers_are_taken_or_faulted_by_name) {
  ParallelPlan plan;
  plan.pp = 2;
  plan.layers_per_chunk = {17, 15};
  const ScheduleRow& row = *find_schedule("1f1b");
  EXPECT_EQ(layout_stages(model_of(32), plan, row)[0].layers, std::vector<int64_t>{17});
  plan.layers_per_chunk = {17, 16, -2};
  Faults faults;
  validate_stage_layout(model_of(32), plan, row, faults);
  ASSERT_EQ(faults.list().size(), 2u);
  EXPECT_EQ(faults.list()[0].field, "parallel.layers_per_chunk");
  plan.layers_per_chunk.clear();
  plan.pp = 64;
  Faults too_few;
  validate_stage_layout(model_of(32), plan, row, too_few);
  EXPECT_EQ(too_few.list().size(), 1u);
}

TEST(StageLayout, by_cost_the_stage_with_the_head_has_fewer_layers) {
  ModelArchitecture model = model_of(28);
  model.hidden = 3072;
  model.ffn = 8192;
  model.heads = model.kv_heads = 32;
  model.head_dim = 96;
  model.vocab = 131072;
  EXPECT_EQ(layers_by_cost(model, 4), (std::vector<int64_t>{8, 8, 8, 4}));
  for (const int64_t chunks : {1, 2, 3, 5, 8, 16}) {
    const std::vector<int64_t> layers = layers_by_cost(model, chunks);
    EXPECT_EQ(std::accumulate(layers.begin(), layers.end(), int64_t{0}), 28) << chunks;
  }
}

}  // namespace
}  // namespace herdsim
