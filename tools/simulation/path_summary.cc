#include "tools/simulation/path_summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "sim/base/table.h"
#include "sim/base/text.h"
#include "sim/metrics/term_labels.h"
#include "tools/simulation/explanation.h"

namespace herdsim {
namespace {

constexpr size_t kSegmentsShown = 5;

// What a part of a kernel's time is called.
std::string kernel_line(TimeTerm term) {
  switch (term) {
    case TimeTerm::kCompute:
      return "GEMMs and attention";
    case TimeTerm::kStraggler:
      return "slower GPUs";
    case TimeTerm::kOther:
      return "slowed kernels";
    case TimeTerm::kMemoryBound:
    case TimeTerm::kOptimizer:
    case TimeTerm::kExposedTp:
    case TimeTerm::kExposedCp:
    case TimeTerm::kExposedEp:
    case TimeTerm::kExposedPp:
    case TimeTerm::kExposedDp:
    case TimeTerm::kBubble:
    case TimeTerm::kLoader:
      break;
  }
  return std::string(kTermLabels[static_cast<size_t>(term)]);
}

class Summary {
 public:
  explicit Summary(const StepSimulation& step) : step_(step) {}

  PathSummary sum_up() {
    std::set<RankId> ranks;
    const std::vector<CriticalOp>& path = step_.critical_path;
    for (size_t i = 0; i < path.size(); ++i) {
      ranks.insert(path[i].rank);
      if (i > 0 && path[i - 1].rank != path[i].rank) ++out_.changes;
      if (i == 0 || path[i - 1].rank != path[i].rank) close_segment(i), first_ = i;
      add(path[i]);
    }
    close_segment(path.size());
    out_.ops = static_cast<int64_t>(path.size());
    out_.ranks = static_cast<int64_t>(ranks.size());
    for (auto& [name, line] : lines_) {
      out_.length += line.time;
      if (line.time > Duration::zero()) out_.lines.push_back(std::move(line));
    }
    std::stable_sort(out_.lines.begin(), out_.lines.end(),
                     [](const PathLine& a, const PathLine& b) { return a.time > b.time; });
    std::stable_sort(out_.segments.begin(), out_.segments.end(),
                     [](const PathSegment& a, const PathSegment& b) {
                       return a.end - a.begin > b.end - b.begin;
                     });
    return std::move(out_);
  }

 private:
  PathLine& line(const std::string& what, TimeTerm term) {
    PathLine& found = lines_[what];
    found.what = what;
    found.term = term;
    return found;
  }

  void add(const CriticalOp& op) {
    const Work& work = step_.graph.works[op.work];
    for (size_t t = 0; t < kTimeTerms; ++t) {
      if (op.terms[t] == Duration::zero()) continue;
      const auto term = static_cast<TimeTerm>(t);
      out_.terms[t] += op.terms[t];
      const std::string what =
          work.kind == WorkKind::kCompute ? kernel_line(term) : transfer_name(work);
      PathLine& found = line(what, term);
      if (work.kind == WorkKind::kCollective || work.kind == WorkKind::kSend) {
        found.transfer = op.work;
        found.alone += op.alone;
      }
      ++found.ops;
      found.time += op.terms[t];
      stretch_[what] += op.terms[t];
    }
  }

  void close_segment(size_t end) {
    const std::vector<CriticalOp>& path = step_.critical_path;
    if (end > first_ && path[end - 1].end > path[first_].begin) {
      const auto most =
          std::max_element(stretch_.begin(), stretch_.end(),
                           [](const auto& a, const auto& b) { return a.second < b.second; });
      const Duration length = path[end - 1].end - path[first_].begin;
      const RankId rank = path[first_].rank;
      out_.segments.push_back({.rank = rank,
                               .stage = static_cast<int64_t>(step_.graph.program_of(rank).index()),
                               .begin = path[first_].begin,
                               .end = path[end - 1].end,
                               .mostly = most->first,
                               .share = most->second.seconds() / length.seconds()});
    }
    stretch_.clear();
  }

  const StepSimulation& step_;
  std::map<std::string, PathLine> lines_;
  std::map<std::string, Duration> stretch_;  // lines of the segment that is open
  size_t first_ = 0;                         // op of that segment
  PathSummary out_;
};

std::string percent(double share) { return fmt::format("{:.1f} %", 100 * share); }

}  // namespace

PathSummary path_summary(const StepSimulation& step) { return Summary(step).sum_up(); }

std::string path_table(const StepSimulation& step) {
  const PathSummary path = path_summary(step);
  const double whole = step.result.step_time.seconds();
  TextTable lines({{"on the critical path"},
                   {"ops", Align::kRight},
                   {"seconds", Align::kRight},
                   {"of step", Align::kRight}});
  for (const PathLine& line : path.lines) {
    if (line.time.seconds() < 0.0005 * whole) continue;
    lines.add_row({line.what, count_text(line.ops), fmt::format("{:.4f}", line.time.seconds()),
                   percent(line.time.seconds() / whole)});
  }
  TextTable segments({{"on rank", Align::kRight},
                      {"stage", Align::kRight},
                      {"from s", Align::kRight},
                      {"seconds", Align::kRight},
                      {"mostly"}});
  for (size_t i = 0; i < std::min(kSegmentsShown, path.segments.size()); ++i) {
    const PathSegment& s = path.segments[i];
    segments.add_row({std::to_string(s.rank.index()), std::to_string(s.stage),
                      fmt::format("{:.4f}", (s.begin - Instant::start()).seconds()),
                      fmt::format("{:.4f}", (s.end - s.begin).seconds()),
                      fmt::format("{} ({:.0f} %)", s.mostly, 100 * s.share)});
  }
  return fmt::format(
      "The critical path: {} ops that follow each other without a gap, on {}\n"
      "{}, with {} changes from one to another\n\n{}\n{}",
      count_text(path.ops), count_text(path.ranks),
      path.ranks == 1 ? "rank" : "ranks, each for its class", count_text(path.changes),
      lines.text(), segments.text());
}

std::string without_table(const StepSimulation& step) {
  const double whole = step.result.step_time.seconds();
  const PathSummary path = path_summary(step);
  TextTable table({{"without"},
                   {"of step", Align::kRight},
                   {"on the path", Align::kRight},
                   {"step s", Align::kRight},
                   {"shorter by", Align::kRight}});
  const std::array<double, kTimeTerms> account = step.result.time_account_seconds();
  for (const StepWithout& without : step.without) {
    const auto term = static_cast<size_t>(without.term);
    table.add_row({std::string(kTermLabels[term]), percent(account[term] / whole),
                   path.ops == 0 ? "" : percent(path.terms[term].seconds() / whole),
                   fmt::format("{:.4f}{}", without.step.seconds(), without.simulated ? " " : "*"),
                   percent(1 - without.step.seconds() / whole)});
  }
  return "What hiding or removing one loss whole would give at most\n\n" + table.text() +
         "  * a bound: the least that any rank has of it; all others are simulated\n";
}

}  // namespace herdsim
