#include "tools/simulation/schedule_passes.h"

#include <algorithm>

namespace herdsim {
namespace {

bool is_part_of(const Span& span, const SchedulePass& pass) {
  return span.rank == pass.rank && span.phase == pass.phase &&
         span.micro_batch == pass.micro_batch && span.chunk == pass.chunk;
}

bool is_of(const Pass& planned, const SchedulePass& pass) {
  const bool forward = planned.kind == PassKind::kForward;
  return planned.micro_batch == pass.micro_batch && planned.chunk == pass.chunk &&
         forward == (pass.phase == StepPhase::kForward);
}

// The halves of a split backward pass that follow each other are one pass here.
void add_memory(std::vector<SchedulePass>& passes, size_t first, const MemoryQuestion& question) {
  const int64_t stage = passes[first].stage;
  const std::vector<Pass> order = question.schedule.order(question.shape, stage);
  const std::vector<Bytes> held = memory_by_pass(question, stage);
  size_t next = 0;
  for (size_t i = first; i < passes.size(); ++i) {
    for (; next < order.size() && is_of(order[next], passes[i]); ++next) {
      passes[i].memory = std::max(passes[i].memory.value_or(Bytes()), held[next]);
    }
  }
}

}  // namespace

std::vector<SchedulePass> schedule_passes(const StepTrace& trace, const MemoryQuestion& memory) {
  std::vector<SchedulePass> passes;
  size_t at = 0;
  for (const RankPlace& place : trace.ranks) {
    const size_t first = passes.size();
    for (; at < trace.spans.size() && trace.spans[at].rank == place.rank; ++at) {
      const Span& span = trace.spans[at];
      const bool shown = place.tp == 0 && place.cp == 0 && place.dp == 0;
      if (!shown || span.stream != Stream::kCompute) continue;
      if (passes.size() > first && is_part_of(span, passes.back())) {
        passes.back().end = span.end;
      } else {
        passes.push_back({.stage = place.pp,
                          .rank = span.rank,
                          .phase = span.phase,
                          .micro_batch = span.micro_batch,
                          .chunk = span.chunk,
                          .begin = span.begin,
                          .end = span.end,
                          .memory = std::nullopt});
      }
    }
    if (passes.size() > first) add_memory(passes, first, memory);
  }
  std::stable_sort(passes.begin(), passes.end(),
                   [](const SchedulePass& a, const SchedulePass& b) { return a.stage < b.stage; });
  return passes;
}

}  // namespace herdsim
