#include "sim/executor/stretch_shapes.h"

#include <algorithm>
#include <utility>

#include "sim/base/fingerprint.h"

namespace herdsim {

uint32_t StretchShapes::facts_number(const std::vector<LocalFacts>& works) {
  const auto known = std::find(facts_.begin(), facts_.end(), works);
  const auto number = static_cast<uint32_t>(known - facts_.begin());
  if (known == facts_.end()) facts_.push_back(works);
  return number;
}

void StretchShapes::keep_look(uint32_t shape, uint32_t facts, std::span<const uint64_t> words) {
  constexpr size_t kMostLooks = 8;
  std::vector<StretchShape::Look>& looks = shapes_[shape].looks;
  if (looks.size() == kMostLooks || !OpMarks::are_telling(words)) return;
  looks.push_back({facts, {words.begin(), words.end()}});
}

uint32_t StretchShapes::add(StretchShape shape, WorkId first) {
  const uint32_t number = add(std::move(shape));
  of_first_[first.index()].push_back(number);
  return number;
}

uint32_t StretchShapes::add(StretchShape shape) {
  shapes_.push_back(std::move(shape));
  return static_cast<uint32_t>(shapes_.size() - 1);
}

uint32_t StretchShapes::segment_of(WorkId work) {
  uint32_t& number = of_work_[work.index()];
  if (number == 0) {
    keys_.push_back({static_cast<uint32_t>(work.index()), 0});
    number = static_cast<uint32_t>(keys_.size());
  }
  return number - 1;
}

uint32_t StretchShapes::segment_of(std::span<const uint32_t> key) {
  uint64_t hash = key.size();
  for (const uint32_t word : key) hash = mix64(hash ^ word);
  const auto [begin, end] = by_hash_.equal_range(hash);
  const auto known = std::find_if(begin, end, [&](const auto& entry) {
    const std::vector<uint32_t>& other = keys_[entry.second];
    return std::equal(key.begin(), key.end(), other.begin(), other.end());
  });
  if (known != end) return known->second;
  const auto number = static_cast<uint32_t>(keys_.size());
  keys_.emplace_back(key.begin(), key.end());
  by_hash_.emplace(hash, number);
  return number;
}

}  // namespace herdsim
