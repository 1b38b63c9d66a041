// Pipeline schedules: in which order each stage runs the passes of its micro-batches.
//
// A schedule is an order and nothing else. It knows no durations: a stage starts its next pass as
// soon as the pass before it is done and its input has arrived, so one order serves the simulator
// (which adds kernels, transfers and failures), the memory model (which walks it) and the plain
// timeline of schedule_timeline.h (which tests it).
//
// The model is cut into *model chunks*, numbered from the embedding to the head; each sits on a
// stage as one of that stage's local chunks. A micro-batch passes forward through model chunks 0,
// 1, 2, ... and back again.
//
//   const ScheduleRow* row = find_schedule("interleaved-1f1b");
//   const ScheduleShape shape{.stages = 16, .micro_batches = 16, .virtual_stages = 8};
//   for (const Pass& pass : row->order(shape, stage)) ...   // pass.chunk is local;
//   model_chunk_at() names it globally
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.h"

namespace herdsim {

// A backward pass is either one pass or, where the schedule splits it, the gradient of the input
// (which the stage before waits for) and the gradient of the weights (which nobody waits for: it
// fills bubbles).
enum class PassKind : uint8_t { kForward, kBackward, kBackwardInput, kBackwardWeight };

struct Pass {
  PassKind kind = PassKind::kForward;
  int32_t micro_batch = 0;
  int32_t chunk = 0;  // local: which of this stage's chunks

  friend bool operator==(const Pass&, const Pass&) = default;
};

// "forward of micro-batch 15, chunk 7"; a schedule of one chunk a stage leaves the chunk out.
std::string describe(const Pass& pass, int64_t chunks_per_stage);

struct ScheduleShape {
  int64_t stages = 1;
  int64_t micro_batches = 1;
  int64_t virtual_stages = 1;             // local chunks of rows with uses_virtual_stages
  int64_t consecutive_micro_batches = 0;  // of one chunk before the next; 0: as many as stages

  int64_t consecutive() const {
    return consecutive_micro_batches == 0 ? stages : consecutive_micro_batches;
  }
};

// How model chunks lie on p stages.
enum class ChunkLayout : uint8_t {
  kLoop,    // chunk c on stage c mod p
  kFolded,  // 2p chunks in the shape of a V: down the stages and back up, so stage 0 has first and
            // last
  kBidirectional,  // p chunks, each held twice: the first half of the micro-batches enters at stage
                   // 0 and finds chunk c on stage c; the second half enters at stage p - 1 and
                   // finds it on stage p - 1 - c
};

struct ScheduleRow {
  std::string_view name, help, source;
  ChunkLayout layout = ChunkLayout::kLoop;
  bool uses_virtual_stages = false;
  bool splits_backward = false;

  // The passes of one stage, each exactly once, in the order they run.
  // Requires: a shape validate() has no fault with; stage < shape.stages. Complexity: linear in the
  // passes.
  std::vector<Pass> (*order)(const ScheduleShape&, int64_t stage) = nullptr;

  // The idle share of the stage that is busy longest: what it waits between its first and last
  // pass, over what it computes, when all chunks cost the same, transfers are free and each half of
  // a backward pass costs what a forward pass does. A run with those times reaches it exactly;
  // transfers and uneven chunks only add to it.
  double (*bubble_bound)(const ScheduleShape&) = nullptr;

  // Chunk activations a stage holds at its peak, from the start of a forward pass to the end of the
  // same chunk's backward pass (of its weight half, where split). Exact.
  int64_t (*in_flight_bound)(const ScheduleShape&, int64_t stage) = nullptr;

  // Adds a fault for each reason the row cannot run the shape.
  void (*validate)(const ScheduleShape&, Faults&) = nullptr;
};

const std::vector<ScheduleRow>& schedules();
// Null where no row has the name. nearest_name() over schedule_names() helps the user.
const ScheduleRow* find_schedule(std::string_view name);
std::vector<std::string> schedule_names();

struct ChunkPlace {
  int64_t stage = 0;
  int64_t chunk = 0;  // local

  friend bool operator==(const ChunkPlace&, const ChunkPlace&) = default;
};

int64_t chunks_per_stage(const ScheduleRow& row, const ScheduleShape& shape);
int64_t model_chunks(const ScheduleRow& row, const ScheduleShape& shape);
// Where a micro-batch meets a model chunk.
ChunkPlace place_of_chunk(const ScheduleRow& row, const ScheduleShape& shape, int64_t micro_batch,
                          int64_t model_chunk);
// The inverse: the model chunk a stage holds as its local chunk.
int64_t model_chunk_at(const ScheduleRow& row, const ScheduleShape& shape, ChunkPlace place);

}  // namespace herdsim
