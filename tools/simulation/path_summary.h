// What the critical path of a step is made of: by term, by kind of work, and its longest stretches.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/simulation/simulate_step.h"

namespace herdsim {

// All ops of one kind of work on the path.
struct PathLine {
  std::string what;  // "GEMMs and attention", "TP all-gather", "launch forward"
  TimeTerm term = TimeTerm::kOther;
  std::optional<WorkId> transfer;  // the work, of a transfer
  int64_t ops = 0;
  Duration time;
  Duration alone;  // without contention; of a transfer
};

// Ops that follow each other on one rank.
struct PathSegment {
  RankId rank;
  int64_t stage = 0;
  Instant begin, end;
  std::string mostly;  // the line that takes most of it
  double share = 0;    // which it takes
};

struct PathSummary {
  TimeAccount terms{};                // sums to the path
  std::vector<PathLine> lines;        // the longest first; they sum to the path
  std::vector<PathSegment> segments;  // the longest first
  int64_t ops = 0;
  int64_t ranks = 0;    // different ones that it passes through
  int64_t changes = 0;  // of rank
  Duration length;      // the step without waiting for the loader

  Duration of(TimeTerm term) const { return terms[static_cast<size_t>(term)]; }
};

// Of nothing where the step was simulated without its path.
PathSummary path_summary(const StepSimulation& step);

// At most 80 columns: terms, lines, segments.
std::string path_table(const StepSimulation& step);
// At most 80 columns: how much shorter the step would be without each loss.
std::string without_table(const StepSimulation& step);

}  // namespace herdsim
