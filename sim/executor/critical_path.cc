#include "sim/executor/critical_path.h"

#include <algorithm>
#include <optional>

#include "sim/base/check.h"

namespace herdsim {
namespace {

class PathWalk {
 public:
  PathWalk(const OpGraph& graph, const FoldedJob& job, const OpRecords& records)
      : graph_(graph), job_(job), records_(records), before_(graph.programs.size()) {
    for (size_t p = 0; p < graph.programs.size(); ++p) {
      const Program& program = graph.programs[ProgramId(p)];
      before_[p].resize(program.ops.size());
      for (const std::vector<OpId>& order : program.stream_order) {
        for (size_t i = 1; i < order.size(); ++i) before_[p][order[i].index()] = order[i - 1];
      }
    }
  }

  std::vector<PathOp> walk() const {
    std::vector<PathOp> path;
    std::optional<Place> at = last_place();
    while (at) {
      const Place decider = decider_of(*at);
      const OpRecord& record = record_of(*at);
      path.push_back({decider.rank, decider.op, record.begin, record.end});
      at = cause_of(decider, record.begin);
    }
    std::reverse(path.begin(), path.end());
    return path;
  }

 private:
  struct Place {
    RankClassId rank;
    OpId op;
  };

  const OpRecord& record_of(const Place& place) const {
    return records_[place.rank][place.op.index()];
  }
  const Program& program_of(const Place& place) const {
    return graph_.programs[job_.ranks[place.rank].program];
  }

  std::optional<Place> last_place() const {
    std::optional<Place> last;
    for (size_t r = 0; r < records_.size(); ++r) {
      const std::vector<OpRecord>& ops = records_[RankClassId(r)];
      for (size_t o = 0; o < ops.size(); ++o) {
        const Place place{RankClassId(r), OpId(o)};
        if (!last || record_of(*last).end < ops[o].end) last = place;
      }
    }
    return last;
  }

  // Whose start let the op start: the member that arrived last, the sender, or itself.
  Place decider_of(const Place& place) const {
    const WorkKind kind = graph_.works[program_of(place).ops[place.op.index()].work].kind;
    const OpRecord& record = record_of(place);
    if (kind == WorkKind::kReceive) return {record.by, record.cause};
    if (kind != WorkKind::kCollective) return place;
    const std::optional<Place> own = last_before(place);
    const Instant arrived = own ? record_of(*own).end : Instant::start();
    return arrived == record.begin ? place : Place{record.by, record.cause};
  }

  // What the op waited for on its own rank, the last to end.
  std::optional<Place> last_before(const Place& place) const {
    const Program& program = program_of(place);
    const Op& op = program.ops[place.op.index()];
    std::optional<Place> cause;
    const auto consider = [&](OpId candidate) {
      const Place there{place.rank, candidate};
      if (!cause || record_of(*cause).end < record_of(there).end) cause = there;
    };
    const std::optional<OpId>& before =
        before_[job_.ranks[place.rank].program.index()][place.op.index()];
    if (before) consider(*before);
    for (const OpId& dependency : program.dependencies_of(op)) consider(dependency);
    return cause;
  }

  // What ended at `begin` and let the op start; nothing at the beginning of the step.
  std::optional<Place> cause_of(const Place& place, Instant begin) const {
    const std::optional<Place> cause = last_before(place);
    const Instant enabled = cause ? record_of(*cause).end : Instant::start();
    HERDSIM_CHECK(enabled == begin) << "an op began at " << begin.nanoseconds()
                                    << " ns and could have at " << enabled.nanoseconds();
    return begin == Instant::start() ? std::nullopt : cause;
  }

  const OpGraph& graph_;
  const FoldedJob& job_;
  const OpRecords& records_;
  std::vector<std::vector<std::optional<OpId>>> before_;  // on its stream, by program and op
};

}  // namespace

std::vector<PathOp> critical_path(const OpGraph& graph, const FoldedJob& job,
                                  const OpRecords& records) {
  return PathWalk(graph, job, records).walk();
}

}  // namespace herdsim
