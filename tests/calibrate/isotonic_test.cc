#include "calibrate/fit/isotonic.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace herdsim {
namespace {

double distance(const std::vector<double>& a, const std::vector<double>& b,
                const std::vector<double>& weights) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += weights[i] * (a[i] - b[i]) * (a[i] - b[i]);
  return sum;
}

bool never_falls(const std::array<size_t, 3>& sizes, const std::vector<double>& v) {
  const size_t plane = sizes[1] * sizes[2];
  for (size_t i = 0; i < v.size(); ++i) {
    if (i >= plane && v[i] < v[i - plane]) return false;
    if (i % plane >= sizes[2] && v[i] < v[i - sizes[2]]) return false;
    if (i % sizes[2] > 0 && v[i] < v[i - 1]) return false;
  }
  return true;
}

TEST(Isotonic, leaves_alone_what_never_fell) {
  std::vector<double> line = {1, 1, 2, 5};
  make_nondecreasing(line, {1, 2, 3, 4});
  EXPECT_EQ(line, (std::vector<double>{1, 1, 2, 5}));
}

TEST(Isotonic, pools_violators_to_their_weighted_mean) {
  std::vector<double> line = {1, 4, 2, 3, 9};
  make_nondecreasing(line, {1, 1, 3, 1, 1});
  EXPECT_EQ(line, (std::vector<double>{1, 2.5, 2.5, 3, 9}));
}

// The projection on a convex set is the point from which no other point of the set lies at an acute
// angle.
TEST(Isotonic, is_the_nearest_monotone_grid) {
  std::mt19937_64 random(5);
  std::normal_distribution<double> noise(0, 1);
  std::uniform_real_distribution<double> weight(0.1, 3);
  const std::array<size_t, 3> sizes = {4, 3, 5};
  for (int round = 0; round < 20; ++round) {
    std::vector<double> start(60), weights(60);
    for (size_t i = 0; i < start.size(); ++i) {
      start[i] = noise(random) + 0.3 * static_cast<double>(i / 15 + i % 15 / 5 + i % 5);
      weights[i] = weight(random);
    }
    std::vector<double> nearest = start;
    make_grid_nondecreasing(sizes, nearest, weights);
    ASSERT_TRUE(never_falls(sizes, nearest));
    for (int probe = 0; probe < 200; ++probe) {
      // Another monotone grid: the running maximum of a disturbed one.
      std::vector<double> other = nearest;
      for (double& v : other) v += 0.2 * noise(random);
      for (size_t i = 0; i < other.size(); ++i) {
        if (i >= 15) other[i] = std::max(other[i], other[i - 15]);
        if (i % 15 >= 5) other[i] = std::max(other[i], other[i - 5]);
        if (i % 5 > 0) other[i] = std::max(other[i], other[i - 1]);
      }
      ASSERT_GE(distance(other, start, weights), distance(nearest, start, weights) * (1 - 1e-6))
          << round;
    }
  }
}

}  // namespace
}  // namespace herdsim
