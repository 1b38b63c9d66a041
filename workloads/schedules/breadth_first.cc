// All forward passes, then all backward passes: GPipe with one chunk a stage, breadth-first with
// several.
#include <algorithm>

#include "workloads/schedules/pass_order.h"
#include "workloads/schedules/schedule_rows.h"

namespace herdsim {
namespace {

std::vector<Pass> all_forward_all_backward(int64_t chunks, int64_t micro_batches) {
  PassOrder order(2 * chunks * micro_batches);
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    for (int64_t m = 0; m < micro_batches; ++m) order.add(PassKind::kForward, m, chunk);
  }
  for (int64_t chunk = chunks; chunk-- > 0;) {
    for (int64_t m = 0; m < micro_batches; ++m) order.add(PassKind::kBackward, m, chunk);
  }
  return order.take();
}

std::vector<Pass> gpipe_order(const ScheduleShape& shape, int64_t) {
  return all_forward_all_backward(1, shape.micro_batches);
}

double gpipe_bubble(const ScheduleShape& shape) {
  return static_cast<double>(shape.stages - 1) / static_cast<double>(shape.micro_batches);
}

int64_t gpipe_in_flight(const ScheduleShape& shape, int64_t) { return shape.micro_batches; }

void validate_gpipe(const ScheduleShape& shape, Faults& faults) {
  require_positive_shape(shape, faults);
  require_chunks_a_stage(shape, 1, "gpipe", faults);
}

std::vector<Pass> breadth_first_order(const ScheduleShape& shape, int64_t) {
  return all_forward_all_backward(shape.virtual_stages, shape.micro_batches);
}

// With fewer micro-batches than stages the first stage also waits, once a chunk, for the first
// micro-batch to come round.
double breadth_first_bubble(const ScheduleShape& shape) {
  const int64_t v = shape.virtual_stages, m = shape.micro_batches, p = shape.stages;
  const int64_t idle = (p - 1) + (v - 1) * std::max<int64_t>(0, p - m);
  return static_cast<double>(idle) / static_cast<double>(v * m);
}

int64_t breadth_first_in_flight(const ScheduleShape& shape, int64_t) {
  return shape.virtual_stages * shape.micro_batches;
}

}  // namespace

ScheduleRow gpipe_schedule() {
  return {.name = "gpipe",
          .help = "all forward passes, then all backward passes; holds every micro-batch",
          .source = "Huang et al. 2019, GPipe, arXiv:1811.06965",
          .order = &gpipe_order,
          .bubble_bound = &gpipe_bubble,
          .in_flight_bound = &gpipe_in_flight,
          .validate = &validate_gpipe};
}

ScheduleRow breadth_first_schedule() {
  return {
      .name = "breadth-first",
      .help = "every micro-batch through one chunk before the next chunk, then all backward passes",
      .source = "Lamy-Poirier 2023, Breadth-first pipeline parallelism, arXiv:2211.05953",
      .uses_virtual_stages = true,
      .order = &breadth_first_order,
      .bubble_bound = &breadth_first_bubble,
      .in_flight_bound = &breadth_first_in_flight,
      .validate = &require_positive_shape};
}

}  // namespace herdsim
