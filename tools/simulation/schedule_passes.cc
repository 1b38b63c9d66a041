#include "tools/simulation/schedule_passes.h"

#include <algorithm>
#include <map>
#include <tuple>

namespace herdsim {
namespace {

bool is_part_of(const Span& span, const SchedulePass& pass) {
  return span.rank == pass.rank && span.phase == pass.phase &&
         span.micro_batch == pass.micro_batch && span.chunk == pass.chunk;
}

using PassKey = std::tuple<int32_t, int32_t, bool>;

PassKey key_of(const SchedulePass& pass) {
  return {pass.micro_batch, pass.chunk, pass.phase == StepPhase::kForward};
}

// The halves of a split backward pass are one pass here; where forward and backward passes overlap,
// their kernels take turns and a pass comes in several pieces, each with the memory of the whole.
void add_memory(std::vector<SchedulePass>& passes, size_t first, const MemoryQuestion& question) {
  const int64_t stage = passes[first].stage;
  const std::vector<Pass> order = question.schedule.order(question.shape, stage);
  const std::vector<Bytes> held = memory_by_pass(question, stage);
  std::map<PassKey, Bytes> most;
  for (size_t i = 0; i < order.size(); ++i) {
    const PassKey key{static_cast<int32_t>(order[i].micro_batch),
                      static_cast<int32_t>(order[i].chunk), order[i].kind == PassKind::kForward};
    most[key] = std::max(most[key], held[i]);
  }
  for (size_t i = first; i < passes.size(); ++i) {
    const auto found = most.find(key_of(passes[i]));
    if (found != most.end()) passes[i].memory = found->second;
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
