// DualPipe: micro-batches enter at both ends of the pipeline. Every stage holds two chunks, one of
// either direction, so the weights are held twice; a forward pass of one direction is paired with a
// backward pass of the other, which is what lets their all-to-alls hide behind each other's
// compute. In this order the two of a pair are neighbours; whether their transfers overlap is for
// the executor.
//
// The steps below are numbered as in the paper's reference code. A stage of the second half is the
// mirror image of its twin in the first half: "near" is the direction that enters at the pipeline's
// nearer end, "far" the other. Backward passes are whole in the middle of the step and split where
// a bubble can take the weight half.
#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "workloads/schedules/pass_order.h"
#include "workloads/schedules/schedule_rows.h"

namespace herdsim {
namespace {

enum class Direction : uint8_t { kNear, kFar };
using enum Direction;

class DualPipeOrder {
 public:
  DualPipeOrder(const ScheduleShape& shape, int64_t stage)
      : half_(shape.micro_batches / 2),
        mirrored_(2 * stage >= shape.stages),
        order_(3 * shape.micro_batches) {}

  void forward(Direction d) { add(PassKind::kForward, forward_[index(d)]++, d); }
  void backward(Direction d) { add(PassKind::kBackward, backward_[index(d)]++, d); }
  // The weight half waits in a queue.
  void input(Direction d) {
    owed_.push_back({backward_[index(d)], d});
    add(PassKind::kBackwardInput, backward_[index(d)]++, d);
  }
  void weight() {
    add(PassKind::kBackwardWeight, owed_.front().micro_batch, owed_.front().direction);
    owed_.pop_front();
  }
  std::vector<Pass> take() { return order_.take(); }

 private:
  struct Owed {
    int64_t micro_batch;
    Direction direction;
  };

  static size_t index(Direction d) { return d == kNear ? 0 : 1; }
  // Chunk 0 belongs to the micro-batches that enter at stage 0, the first half of them.
  void add(PassKind kind, int64_t micro_batch, Direction d) {
    const bool enters_at_last_stage = (d == kFar) != mirrored_;
    order_.add(kind, micro_batch + (enters_at_last_stage ? half_ : 0),
               enters_at_last_stage ? 1 : 0);
  }

  int64_t half_;
  bool mirrored_;
  int64_t forward_[2] = {0, 0}, backward_[2] = {0, 0};
  std::deque<Owed> owed_;
  PassOrder order_;
};

std::vector<Pass> dualpipe_order(const ScheduleShape& shape, int64_t stage) {
  const int64_t p = shape.stages;
  const int64_t from_end = std::min(stage, p - 1 - stage);
  const int64_t to_middle = p / 2 - 1 - from_end;
  DualPipeOrder order(shape, stage);
  const auto repeat = [](int64_t times, auto&& body) {
    for (int64_t i = 0; i < times; ++i) body();
  };
  repeat(2 * to_middle, [&] { order.forward(kNear); });  // 1
  repeat(from_end + 1, [&] {                             // 2
    order.forward(kNear);
    order.forward(kFar);
  });
  repeat(to_middle, [&] {  // 3
    order.input(kFar);
    order.weight();
    order.forward(kFar);
  });
  repeat(shape.micro_batches / 2 - p + from_end + 1, [&] {  // 4, the main step
    order.forward(kNear);
    order.backward(kFar);
    order.forward(kFar);
    order.backward(kNear);
  });
  repeat(to_middle, [&] {  // 5
    order.backward(kFar);
    order.forward(kFar);
    order.backward(kNear);
  });
  for (int64_t i = 0; i < 2 * (from_end + 1); ++i) {  // 6: the second half of these is split
    const Direction d = i % 2 == 0 ? kFar : kNear;
    i < from_end + 1 ? order.backward(d) : order.input(d);
  }
  repeat(to_middle, [&] {  // 7
    order.weight();
    order.input(kNear);
  });
  repeat(from_end + 1, [&] { order.weight(); });  // 8
  return order.take();
}

// (p/2 - 1)(F + B_input - W). The paper's (p/2 - 1)(F&B + B - 3W) is larger by one F because it
// takes a pair F&B as one block whose results leave at its end; here each leaves when its own pass
// is done.
double bubble(const ScheduleShape& shape) {
  return static_cast<double>(shape.stages / 2 - 1) / static_cast<double>(3 * shape.micro_batches);
}

int64_t in_flight(const ScheduleShape& shape, int64_t) { return shape.stages + 1; }

void validate(const ScheduleShape& shape, Faults& faults) {
  require_positive_shape(shape, faults);
  require_chunks_a_stage(shape, 2, "dualpipe", faults);
  if (shape.stages % 2 != 0) {
    faults.add({.field = "parallel.pp",
                .problem = fmt::format("{} stages cannot be paired from both ends", shape.stages),
                .allowed = "an even number for schedule dualpipe"});
  }
  if (shape.micro_batches % 2 != 0 || shape.micro_batches < 2 * shape.stages) {
    faults.add(
        {.field = "training.global_batch",
         .problem = fmt::format("{} micro-batches a step do not fill both directions",
                                shape.micro_batches),
         .allowed = fmt::format("an even number of micro-batches, {} or more", 2 * shape.stages)});
  }
}

}  // namespace

ScheduleRow dualpipe_schedule() {
  return {.name = "dualpipe",
          .help = "micro-batches from both ends of the pipeline; weights held twice",
          .source = "DeepSeek-AI 2024, DeepSeek-V3, arXiv:2412.19437, section 3.2.1",
          .layout = ChunkLayout::kBidirectional,
          .splits_backward = true,
          .order = &dualpipe_order,
          .bubble_bound = &bubble,
          .in_flight_bound = &in_flight,
          .validate = &validate};
}

}  // namespace herdsim
