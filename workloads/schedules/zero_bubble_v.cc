// ZB-V: the split backward pass of zero_bubble.cc on two chunks a stage in the shape of a V. Stage
// 0 holds the first and the last chunk, so a micro-batch turns round on the last stage without a
// transfer and every stage sees its first backward pass early: no bubble with the memory of 1F1B,
// 2p half-size chunks on every stage.
#include <algorithm>

#include "workloads/schedules/pass_order.h"
#include "workloads/schedules/schedule_rows.h"

namespace herdsim {
namespace {

constexpr int64_t kDown = 0, kUp = 1;  // the chunks of the two arms of the V

// The order is written for at least 2p - 1 micro-batches, what fills the pipeline. With fewer, the
// passes of the missing ones are left out, which keeps every dependency of the others.
class VOrder {
 public:
  VOrder(const ScheduleShape& shape)
      : exists_(shape.micro_batches),
        planned_(std::max(shape.micro_batches, 2 * shape.stages - 1)),
        order_(6 * shape.micro_batches) {}

  void forward(int64_t chunk) { add(PassKind::kForward, forward_[chunk]++, chunk); }
  void input(int64_t chunk) { add(PassKind::kBackwardInput, input_[chunk]++, chunk); }
  void weight(int64_t chunk) { add(PassKind::kBackwardWeight, weight_[chunk]++, chunk); }
  void backward(int64_t chunk) {
    input(chunk);
    weight(chunk);
  }
  bool forward_left(int64_t chunk) const { return forward_[chunk] < planned_; }
  bool weight_owed(int64_t chunk) const { return weight_[chunk] < input_[chunk]; }
  std::vector<Pass> take() { return order_.take(); }

 private:
  void add(PassKind kind, int64_t micro_batch, int64_t chunk) {
    if (micro_batch < exists_) order_.add(kind, micro_batch, chunk);
  }

  int64_t exists_, planned_;
  int64_t forward_[2] = {0, 0}, input_[2] = {0, 0}, weight_[2] = {0, 0};
  PassOrder order_;
};

std::vector<Pass> zb_v_order(const ScheduleShape& shape, int64_t stage) {
  const int64_t behind = shape.stages - stage;  // stages from this one to the turn
  VOrder order(shape);
  for (int64_t i = 0; i < 2 * behind - 1; ++i) order.forward(kDown);
  for (int64_t i = 0; i < stage; ++i) {
    order.forward(kUp);
    order.forward(kDown);
  }
  for (int64_t i = 0; i < behind; ++i) {
    order.forward(kUp);
    order.backward(kUp);
  }
  while (order.forward_left(kUp)) {
    if (order.forward_left(kDown)) order.forward(kDown);
    order.backward(kDown);
    order.forward(kUp);
    order.backward(kUp);
  }
  // Cool-down: input gradients first, they are waited for; weight gradients fill what is left.
  for (int64_t i = 0; i < stage; ++i) {
    order.input(kDown);
    order.input(kUp);
  }
  for (int64_t i = 0; i < behind; ++i) {
    order.input(kDown);
    order.weight(kDown);
  }
  while (order.weight_owed(kUp)) order.weight(kUp);
  while (order.weight_owed(kDown)) order.weight(kDown);
  return order.take();
}

double bubble(const ScheduleShape& shape) {
  const int64_t missing = 2 * shape.stages - 1 - shape.micro_batches;
  return static_cast<double>(std::max<int64_t>(0, 2 * missing)) /
         static_cast<double>(6 * shape.micro_batches);
}

// With few micro-batches, all of them in the first arm and those of the second that have turned
// round.
int64_t in_flight(const ScheduleShape& shape, int64_t stage) {
  const int64_t p = shape.stages, m = shape.micro_batches;
  return std::min({2 * p, 2 * m, m + 1 + stage});
}

void validate(const ScheduleShape& shape, Faults& faults) {
  require_positive_shape(shape, faults);
  require_chunks_a_stage(shape, 2, "zb-v", faults);
}

}  // namespace

ScheduleRow zb_v_schedule() {
  return {
      .name = "zb-v",
      .help = "zero bubble with the memory of 1f1b: two chunks a stage, folded back in a V",
      .source = "Qi et al. 2024, Pipeline Parallelism with Controllable Memory, arXiv:2405.15362",
      .layout = ChunkLayout::kFolded,
      .splits_backward = true,
      .order = &zb_v_order,
      .bubble_bound = &bubble,
      .in_flight_bound = &in_flight,
      .validate = &validate};
}

}  // namespace herdsim
