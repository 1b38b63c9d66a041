// ZB-H1 and ZB-2p (the paper's ZB-H2): 1F1B with the backward pass split. The gradient of the input
// goes upstream at once, the gradient of the weights waits until the stage would idle.
//
// Both are one order with one number, k, of micro-batches a stage may hold. Stage s starts ahead
// with fewer the later it is, and makes up for it by putting off weight halves: stage s runs the
// weight half of micro-batch i - d(s) after the input half of i, with d(s) chosen so that every
// stage holds exactly k.
//   zb-h1   k = p       warm-up p - s,            d = s    idle (p - 1)(F + B - W), a third of
//   1F1B's zb-2p   k = 2p - 1  warm-up 2(p - s) - 1,     d = 2s   no idle where F = B = W, twice
//   the memory
// The order is the handcrafted one; the paper's automatic search, for passes of unequal cost, is
// not built.
#include <algorithm>

#include "workloads/schedules/pass_order.h"
#include "workloads/schedules/schedule_rows.h"

namespace herdsim {
namespace {

// `ahead`: forward passes before the first backward pass; `put_off`: input halves before the first
// weight half.
std::vector<Pass> split_order(int64_t m, int64_t ahead, int64_t put_off) {
  PassOrder order(3 * m);
  int64_t forward = 0, input = 0, weight = 0;
  while (forward < std::min(ahead, m)) order.add(PassKind::kForward, forward++);
  while (input < m) {
    order.add(PassKind::kBackwardInput, input++);
    if (input > put_off) order.add(PassKind::kBackwardWeight, weight++);
    if (forward < m) order.add(PassKind::kForward, forward++);
  }
  while (weight < m) order.add(PassKind::kBackwardWeight, weight++);
  return order.take();
}

std::vector<Pass> zb_h1_order(const ScheduleShape& shape, int64_t stage) {
  return split_order(shape.micro_batches, shape.stages - stage, stage);
}

// With fewer micro-batches than stages the first input gradient comes back later than the stage has
// work for.
double zb_h1_bubble(const ScheduleShape& shape) {
  const int64_t p = shape.stages, m = shape.micro_batches;
  return static_cast<double>(p - 1 + std::max<int64_t>(0, p - m)) / static_cast<double>(3 * m);
}

int64_t zb_h1_in_flight(const ScheduleShape& shape, int64_t) {
  return std::min(shape.micro_batches, shape.stages);
}

void validate_zb_h1(const ScheduleShape& shape, Faults& faults) {
  require_positive_shape(shape, faults);
  require_chunks_a_stage(shape, 1, "zb-h1", faults);
}

std::vector<Pass> zb_2p_order(const ScheduleShape& shape, int64_t stage) {
  return split_order(shape.micro_batches, 2 * (shape.stages - stage) - 1, 2 * stage);
}

double zb_2p_bubble(const ScheduleShape& shape) {
  const int64_t missing = 2 * shape.stages - 1 - shape.micro_batches;
  return static_cast<double>(std::max<int64_t>(0, missing)) /
         static_cast<double>(3 * shape.micro_batches);
}

int64_t zb_2p_in_flight(const ScheduleShape& shape, int64_t) {
  return std::min(shape.micro_batches, 2 * shape.stages - 1);
}

void validate_zb_2p(const ScheduleShape& shape, Faults& faults) {
  require_positive_shape(shape, faults);
  require_chunks_a_stage(shape, 1, "zb-2p", faults);
}

constexpr std::string_view kSource = "Qi et al. 2023, Zero Bubble, arXiv:2401.10241, section 2";

}  // namespace

ScheduleRow zb_h1_schedule() {
  return {.name = "zb-h1",
          .help = "1f1b with weight gradients put off into the bubble: a third of it left",
          .source = kSource,
          .splits_backward = true,
          .order = &zb_h1_order,
          .bubble_bound = &zb_h1_bubble,
          .in_flight_bound = &zb_h1_in_flight,
          .validate = &validate_zb_h1};
}

ScheduleRow zb_2p_schedule() {
  return {.name = "zb-2p",
          .help = "zero bubble for twice the activations of 1f1b (ZB-H2)",
          .source = kSource,
          .splits_backward = true,
          .order = &zb_2p_order,
          .bubble_bound = &zb_2p_bubble,
          .in_flight_bound = &zb_2p_in_flight,
          .validate = &validate_zb_2p};
}

}  // namespace herdsim
