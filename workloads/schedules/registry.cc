#include "sim/base/check.h"
#include "workloads/schedules/schedule.h"
#include "workloads/schedules/schedule_rows.h"

namespace herdsim {

const std::vector<ScheduleRow>& schedules() {
  static const std::vector<ScheduleRow> rows = {
      gpipe_schedule(), one_f_one_b_schedule(), interleaved_schedule(), breadth_first_schedule(),
      zb_h1_schedule(), zb_2p_schedule(),       zb_v_schedule(),        dualpipe_schedule(),
  };
  return rows;
}

const ScheduleRow* find_schedule(std::string_view name) {
  for (const ScheduleRow& row : schedules()) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

std::vector<std::string> schedule_names() {
  std::vector<std::string> names;
  for (const ScheduleRow& row : schedules()) names.emplace_back(row.name);
  return names;
}

std::string describe(const Pass& pass, int64_t chunks_per_stage) {
  std::string text;
  switch (pass.kind) {
    case PassKind::kForward:
      text = "forward";
      break;
    case PassKind::kBackward:
      text = "backward";
      break;
    case PassKind::kBackwardInput:
      text = "input gradient";
      break;
    case PassKind::kBackwardWeight:
      text = "weight gradient";
      break;
  }
  text += " of micro-batch " + std::to_string(pass.micro_batch);
  if (chunks_per_stage > 1) text += ", chunk " + std::to_string(pass.chunk);
  return text;
}

int64_t chunks_per_stage(const ScheduleRow& row, const ScheduleShape& shape) {
  switch (row.layout) {
    case ChunkLayout::kLoop:
      return row.uses_virtual_stages ? shape.virtual_stages : 1;
    case ChunkLayout::kFolded:
    case ChunkLayout::kBidirectional:
      return 2;
  }
  return 0;
}

int64_t model_chunks(const ScheduleRow& row, const ScheduleShape& shape) {
  const bool held_twice = row.layout == ChunkLayout::kBidirectional;
  return held_twice ? shape.stages : shape.stages * chunks_per_stage(row, shape);
}

ChunkPlace place_of_chunk(const ScheduleRow& row, const ScheduleShape& shape, int64_t micro_batch,
                          int64_t model_chunk) {
  HERDSIM_DCHECK(model_chunk >= 0 && model_chunk < model_chunks(row, shape)) << model_chunk;
  const int64_t p = shape.stages;
  switch (row.layout) {
    case ChunkLayout::kLoop:
      return {model_chunk % p, model_chunk / p};
    case ChunkLayout::kFolded:
      return model_chunk < p ? ChunkPlace{model_chunk, 0} : ChunkPlace{2 * p - 1 - model_chunk, 1};
    case ChunkLayout::kBidirectional:
      return 2 * micro_batch < shape.micro_batches ? ChunkPlace{model_chunk, 0}
                                                   : ChunkPlace{p - 1 - model_chunk, 1};
  }
  return {};
}

int64_t model_chunk_at(const ScheduleRow& row, const ScheduleShape& shape, ChunkPlace place) {
  const int64_t p = shape.stages;
  switch (row.layout) {
    case ChunkLayout::kLoop:
      return place.chunk * p + place.stage;
    case ChunkLayout::kFolded:
      return place.chunk == 0 ? place.stage : 2 * p - 1 - place.stage;
    case ChunkLayout::kBidirectional:
      return place.chunk == 0 ? place.stage : p - 1 - place.stage;
  }
  return 0;
}

}  // namespace herdsim
