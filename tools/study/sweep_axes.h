// The axes of a sweep: which fields of a scenario take which values.
//
//   parallel.tp=1,2,4,8                      a list; brackets, braces and quotes keep their commas
//   seed=1:64:1                              first:last:step, last included where a step reaches it
//   reliability.rate_scale=0.25..4*2         first..last*factor: 0.25, 0.5, 1, 2, 4
//   training.global_batch=512,1024:4096:1024 both mixed
//   parallel.tp,parallel.dp=(4,256),(8,128)  tied fields, which change together
//
// A grid is the product of its axes; the last axis changes fastest.
//
//   const SweepGrid grid(parse_axes({"parallel.tp=4,8", "seed=1:3:1"}));
//   grid.size() == 6;   grid.label(1) == "parallel.tp=4 seed=2"
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace herdsim {

// What `--axis --help` says of the above, in one sentence.
inline constexpr std::string_view kAxisForm =
    "PATH=V1,V2,...; ranges FIRST:LAST:STEP and FIRST..LAST*FACTOR; tied fields "
    "PATH,PATH=(V,V),(V,V)";

struct SweepAxis {
  std::vector<std::string> paths;                // more than one: tied
  std::vector<std::vector<std::string>> values;  // of each step of the axis, one a path
};

// Ranges are expanded in decimal, so that 0.1:0.3:0.1 is 0.1, 0.2, 0.3.
// Throws: SpecError with the faults of all axes: no path, no value, a range that is empty or never
// ends, tuples of another length than the paths, a field on two axes or a value twice on one.
std::vector<SweepAxis> parse_axes(const std::vector<std::string>& texts);

class SweepGrid {
 public:
  // Throws: SpecError for more than kMostPoints points.
  explicit SweepGrid(std::vector<SweepAxis> axes);

  static constexpr int64_t kMostPoints = 10'000'000;

  int64_t size() const { return size_; }
  // Of all axes, in order.
  std::vector<std::string> paths() const;
  // One a path. Requires: 0 <= point < size().
  std::vector<std::string> values(int64_t point) const;
  // As --set takes them.
  std::vector<std::string> sets(int64_t point) const;
  // Names the point within the sweep.
  std::string label(int64_t point) const;
  // Every value of every axis, as --set takes them: what has to be readable for the sweep to begin.
  std::vector<std::string> all_sets() const;

 private:
  std::vector<SweepAxis> axes_;
  int64_t size_ = 1;
};

}  // namespace herdsim
