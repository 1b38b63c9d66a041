// Interleaved 1F1B. A stage holds v chunks and walks its v * m units (micro-batch, chunk) in one
// fixed order: groups of N consecutive micro-batches, each group through all chunks, N units a
// chunk; backward the same with the chunks reversed. Stage r runs w(r) = 2 (p - 1 - r) + (v - 1) N
// units of warm-up, then alternates one forward and one backward unit.
//
// The warm-up is what the first backward pass needs. The last stage reaches the last chunk of
// micro-batch 0 after (v - 1) N units; the gradient then takes one unit a stage on its way back, in
// which a stage upstream, which is ahead by one unit already, does two. N = p is Megatron's
// schedule, N = m all chunks of all micro-batches (as breadth-first but with backward passes as
// early as possible); Llama 3 chooses N between.
//
// Why N < p is refused. A unit of chunk c >= 1 on stage 0 needs the unit N before it to have passed
// the last stage. With N < p it is not there yet when its turn comes: the stage stalls for p - N
// units at each change of chunk, and where a second group follows, stage 0 waits for a forward unit
// that the last stage runs only after a backward unit that stage 0 itself has not sent: a deadlock.
// With a single group (N >= m, fewer micro-batches than stages) only the stall is left, which
// bubble_bound counts; that is the use Llama 3 names for small batches.
#include <fmt/format.h>

#include <algorithm>

#include "workloads/schedules/pass_order.h"
#include "workloads/schedules/schedule_rows.h"

namespace herdsim {
namespace {

// The micro-batches of a step are cut into groups of N; the last may be shorter.
int64_t group_size(const ScheduleShape& shape) {
  return std::min(shape.consecutive(), shape.micro_batches);
}

int64_t warm_up(const ScheduleShape& shape, int64_t stage) {
  const int64_t wanted =
      2 * (shape.stages - 1 - stage) + (shape.virtual_stages - 1) * group_size(shape);
  return std::min(wanted, shape.virtual_stages * shape.micro_batches);
}

// Walks the units in order, once per direction.
class Units {
 public:
  Units(const ScheduleShape& shape, bool backward)
      : group_(group_size(shape)),
        micro_batches_(shape.micro_batches),
        chunks_(shape.virtual_stages),
        backward_(backward),
        end_(group_) {}

  void add_next(PassOrder& order) {
    order.add(backward_ ? PassKind::kBackward : PassKind::kForward, micro_batch_,
              backward_ ? chunks_ - 1 - round_ : round_);
    if (++micro_batch_ < end_) return;
    if (++round_ < chunks_) {
      micro_batch_ = begin_;
      return;
    }
    round_ = 0;
    begin_ = micro_batch_ = end_;
    end_ = std::min(end_ + group_, micro_batches_);
  }

 private:
  int64_t group_, micro_batches_, chunks_;
  bool backward_;
  int64_t begin_ = 0, end_;  // the group
  int64_t micro_batch_ = 0, round_ = 0;
};

std::vector<Pass> interleaved_order(const ScheduleShape& shape, int64_t stage) {
  const int64_t units = shape.virtual_stages * shape.micro_batches;
  const int64_t ahead = warm_up(shape, stage);
  PassOrder order(2 * units);
  Units forward(shape, false), backward(shape, true);
  for (int64_t i = 0; i < ahead; ++i) forward.add_next(order);
  for (int64_t i = ahead; i < units; ++i) {
    forward.add_next(order);
    backward.add_next(order);
  }
  for (int64_t i = 0; i < ahead; ++i) backward.add_next(order);
  return order.take();
}

double bubble(const ScheduleShape& shape) {
  const int64_t p = shape.stages, v = shape.virtual_stages, m = shape.micro_batches;
  const int64_t idle = (p - 1) + (v - 1) * std::max<int64_t>(0, p - m);
  return static_cast<double>(idle) / static_cast<double>(v * m);
}

int64_t in_flight(const ScheduleShape& shape, int64_t stage) {
  const int64_t units = shape.virtual_stages * shape.micro_batches;
  return std::min(warm_up(shape, stage) + 1, units);
}

void validate(const ScheduleShape& shape, Faults& faults) {
  require_positive_shape(shape, faults);
  const int64_t p = shape.stages, m = shape.micro_batches, n = shape.consecutive();
  if (p < 1 || m < 1 || n < 1 || shape.virtual_stages == 1 || p == 1 || n >= m) return;
  if (n < p) {
    faults.add(
        {.field = "training.consecutive_micro_batches",
         .problem = fmt::format("{} of one chunk are fewer than the {} pipeline stages: "
                                "stage 0 would wait for a micro-batch that is still on its way, "
                                "in the end for itself",
                                n, p),
         .allowed = fmt::format("{} or more, or all {} of the step", p, m)});
    return;
  }
  if (const int64_t rest = m % n; rest != 0 && rest < p) {
    faults.add(
        {.field = "training.consecutive_micro_batches",
         .problem = fmt::format("{} micro-batches in groups of {} leave a last group of {}, "
                                "fewer than the {} pipeline stages",
                                m, n, rest, p),
         .allowed = fmt::format("a number of micro-batches that is a multiple of {}, or leaves "
                                "at least {}",
                                n, p)});
  }
}

}  // namespace

ScheduleRow interleaved_schedule() {
  return {.name = "interleaved-1f1b",
          .help =
              "1f1b over several chunks a stage: the bubble divided by their number; "
              "consecutive_micro_batches as in Llama 3",
          .source =
              "Narayanan et al. 2021, Megatron-LM, arXiv:2104.04473, section 2.2; "
              "Llama 3, arXiv:2407.21783, section 3.3.2",
          .uses_virtual_stages = true,
          .order = &interleaved_order,
          .bubble_bound = &bubble,
          .in_flight_bound = &in_flight,
          .validate = &validate};
}

}  // namespace herdsim
