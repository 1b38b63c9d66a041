#include "workloads/schedules/pass_order.h"

#include <fmt/format.h>

namespace herdsim {

void require_positive_shape(const ScheduleShape& shape, Faults& faults) {
  const auto require = [&faults](const char* field, int64_t value, int64_t least) {
    if (value >= least) return;
    faults.add({.field = field,
                .problem = fmt::format("{} is too small", value),
                .allowed = fmt::format("{} or more", least)});
  };
  require("parallel.pp", shape.stages, 1);
  require("training.global_batch: micro-batches of a step", shape.micro_batches, 1);
  require("parallel.virtual_stages", shape.virtual_stages, 1);
  require("training.consecutive_micro_batches", shape.consecutive_micro_batches, 0);
}

void require_chunks_a_stage(const ScheduleShape& shape, int64_t chunks, std::string_view row,
                            Faults& faults) {
  if (shape.virtual_stages <= 1 || shape.virtual_stages == chunks) return;
  faults.add({.field = "parallel.virtual_stages",
              .problem = fmt::format("{}, but schedule {} holds {} chunk{} a stage",
                                     shape.virtual_stages, row, chunks, chunks == 1 ? "" : "s"),
              .allowed = fmt::format("{}, or a schedule with virtual stages: interleaved-1f1b, "
                                     "breadth-first",
                                     chunks)});
}

}  // namespace herdsim
