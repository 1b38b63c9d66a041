// Paths of any length in one array, in blocks of a power of two that are reused by size. Steady
// state allocates nothing.
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

namespace herdsim {

class PathPool {
 public:
  // One crossing of a flow, with where the link keeps its side of it.
  struct Step {
    uint32_t link;
    uint32_t member;  // position in the link's list of members
    int64_t count;
  };
  struct Path {
    uint32_t first = 0;
    uint32_t length = 0;
  };

  // Invalidates: spans of earlier paths.
  Path allocate(size_t length) {
    if (length == 0) return {};
    std::vector<uint32_t>& free = free_[size_class(length)];
    Path path{0, static_cast<uint32_t>(length)};
    if (free.empty()) {
      path.first = static_cast<uint32_t>(steps_.size());
      steps_.resize(steps_.size() + (size_t{1} << size_class(length)));
    } else {
      path.first = free.back();
      free.pop_back();
    }
    return path;
  }
  void release(Path path) {
    if (path.length > 0) free_[size_class(path.length)].push_back(path.first);
  }

  std::span<Step> steps(Path path) { return std::span(steps_).subspan(path.first, path.length); }
  std::span<const Step> steps(Path path) const {
    return std::span(steps_).subspan(path.first, path.length);
  }

 private:
  static size_t size_class(size_t length) {
    return static_cast<size_t>(std::bit_width(length - 1));
  }

  std::vector<Step> steps_;
  std::array<std::vector<uint32_t>, 33> free_;  // by size class
};

}  // namespace herdsim
