// Random links and flows for the tests of the solvers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <span>
#include <vector>

#include "sim/network/max_min.h"

namespace herdsim {

class Dice {
 public:
  explicit Dice(uint64_t seed) : engine_(seed) {}
  // Uniform enough in [low, high].
  int64_t between(int64_t low, int64_t high) {
    return low + static_cast<int64_t>(engine_() % static_cast<uint64_t>(high - low + 1));
  }
  bool one_in(int64_t n) { return between(1, n) == 1; }

 private:
  std::mt19937_64 engine_;
};

// Small numbers make ties and floors that matter; large ones look like links.
enum class Scale { kTiny, kReal };
constexpr Scale kScales[] = {Scale::kTiny, Scale::kReal};

inline Bandwidth random_capacity(Dice& dice, Scale scale) {
  if (scale == Scale::kTiny) return Bandwidth::from_bytes_per_second(dice.between(0, 40));
  return gigabits_per_second(50) * dice.between(1, 16) +
         Bandwidth::from_bytes_per_second(dice.one_in(3) ? dice.between(0, 5) : 0);
}

inline Bandwidth random_cap(Dice& dice, Scale scale) {
  if (dice.one_in(2)) return Bandwidth::unlimited();
  if (scale == Scale::kTiny) return Bandwidth::from_bytes_per_second(dice.between(0, 20));
  return gigabits_per_second(dice.between(1, 400));
}

// Distinct links with small counts; the empty path is possible.
inline std::vector<Crossing> random_path(Dice& dice, size_t links) {
  std::vector<Crossing> path;
  for (int64_t steps = dice.between(0, 5); steps-- > 0;) {
    const LinkId link(static_cast<size_t>(dice.between(0, static_cast<int64_t>(links) - 1)));
    if (std::none_of(path.begin(), path.end(), [&](const Crossing& c) { return c.link == link; })) {
      path.push_back({link, dice.one_in(3) ? dice.between(1, 7) : 1});
    }
  }
  return path;
}

struct RandomSystem {
  std::vector<Bandwidth> capacities;
  std::vector<std::vector<Crossing>> paths;
  std::vector<Bandwidth> caps;

  std::vector<FlowPath> flows() const {
    std::vector<FlowPath> result;
    for (size_t f = 0; f < paths.size(); ++f) result.push_back({paths[f], caps[f]});
    return result;
  }
};

inline RandomSystem random_system(Dice& dice, Scale scale) {
  RandomSystem system;
  const size_t links = static_cast<size_t>(dice.between(1, 15));
  const size_t flows = static_cast<size_t>(dice.between(1, 40));
  for (size_t l = 0; l < links; ++l) system.capacities.push_back(random_capacity(dice, scale));
  for (size_t f = 0; f < flows; ++f) {
    system.paths.push_back(random_path(dice, links));
    system.caps.push_back(random_cap(dice, scale));
  }
  return system;
}

}  // namespace herdsim
