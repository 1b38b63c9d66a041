// 1F1B (PipeDream-Flush): a stage starts the backward pass of a micro-batch as soon as it can, so
// it never holds more micro-batches than there are stages behind it.
#include <algorithm>

#include "workloads/schedules/pass_order.h"
#include "workloads/schedules/schedule_rows.h"

namespace herdsim {
namespace {

int64_t in_flight(const ScheduleShape& shape, int64_t stage) {
  return std::min(shape.micro_batches, shape.stages - stage);
}

std::vector<Pass> one_f_one_b_order(const ScheduleShape& shape, int64_t stage) {
  const int64_t warm_up = in_flight(shape, stage) - 1;
  PassOrder order(2 * shape.micro_batches);
  for (int64_t m = 0; m < warm_up; ++m) order.add(PassKind::kForward, m);
  for (int64_t m = warm_up; m < shape.micro_batches; ++m) {
    order.add(PassKind::kForward, m);
    order.add(PassKind::kBackward, m - warm_up);
  }
  for (int64_t m = shape.micro_batches - warm_up; m < shape.micro_batches; ++m) {
    order.add(PassKind::kBackward, m);
  }
  return order.take();
}

double bubble(const ScheduleShape& shape) {
  return static_cast<double>(shape.stages - 1) / static_cast<double>(shape.micro_batches);
}

void validate(const ScheduleShape& shape, Faults& faults) {
  require_positive_shape(shape, faults);
  require_chunks_a_stage(shape, 1, "1f1b", faults);
}

}  // namespace

ScheduleRow one_f_one_b_schedule() {
  return {
      .name = "1f1b",
      .help = "one forward, one backward; the bubble of gpipe with the memory of the stages behind",
      .source = "Narayanan et al. 2021, PipeDream-2BW, arXiv:2006.09503, section 3.2",
      .order = &one_f_one_b_order,
      .bubble_bound = &bubble,
      .in_flight_bound = &in_flight,
      .validate = &validate};
}

}  // namespace herdsim
