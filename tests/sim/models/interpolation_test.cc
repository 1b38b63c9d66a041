#include "sim/models/interpolation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace herdsim {
namespace {

std::vector<double> random_nodes(std::mt19937_64& random, size_t count) {
  std::uniform_real_distribution<double> step(1.1, 4.0);
  std::vector<double> nodes = {step(random)};
  while (nodes.size() < count) nodes.push_back(nodes.back() * step(random));
  return nodes;
}

// The definition, one axis after the other, without tables of logarithms.
double plain_line(double x0, double y0, double x1, double y1, double x) {
  const double share =
      std::clamp((std::log(x) - std::log(x0)) / (std::log(x1) - std::log(x0)), 0.0, 1.0);
  return std::exp((1 - share) * std::log(y0) + share * std::log(y1));
}

size_t plain_segment(const std::vector<double>& nodes, double x) {
  size_t i = 0;
  while (i + 2 < nodes.size() && nodes[i + 1] < x) ++i;
  return i;
}

TEST(LogCurve, passes_through_its_points) {
  const LogCurve curve({{1, 3}, {10, 5}, {1000, 4}});
  for (const auto& [x, y] : curve.points()) EXPECT_DOUBLE_EQ(curve.at(x), y);
}

TEST(LogCurve, is_a_power_law_between_points) {
  const LogCurve curve({{2, 6}, {2048, 6 * std::pow(1024, 0.7)}});
  for (double x = 2; x < 2048; x *= 1.37)
    EXPECT_NEAR(curve.at(x) / (6 * std::pow(x / 2, 0.7)), 1, 1e-12);
}

TEST(LogCurve, stays_at_its_border_outside_and_says_so) {
  const LogCurve curve({{10, 3}, {100, 7}});
  EXPECT_EQ(curve.at(1), 3);
  EXPECT_EQ(curve.at(1e9), 7);
  EXPECT_FALSE(curve.covers(9.99));
  EXPECT_TRUE(curve.covers(10));
  EXPECT_TRUE(curve.covers(100));
  EXPECT_FALSE(curve.covers(100.01));
}

TEST(LogCurve, of_one_point_is_constant) {
  const LogCurve curve({{10, 3}});
  for (const double x : {1.0, 10.0, 100.0}) EXPECT_EQ(curve.at(x), 3);
}

TEST(LogGrid3, agrees_with_interpolation_one_axis_after_another) {
  std::mt19937_64 random(20240901);
  std::uniform_real_distribution<double> value(0.1, 100);
  for (int round = 0; round < 50; ++round) {
    const std::vector<double> x = random_nodes(random, 2 + round % 5),
                              y = random_nodes(random, 2 + round % 3),
                              z = random_nodes(random, 2 + round % 7);
    std::vector<double> values(x.size() * y.size() * z.size());
    for (double& v : values) v = value(random);
    const LogGrid3 grid({LogAxis(x), LogAxis(y), LogAxis(z)}, values);
    for (int probe = 0; probe < 50; ++probe) {
      // A tenth outside on either side.
      const auto pick = [&](const std::vector<double>& nodes) {
        std::uniform_real_distribution<double> at(std::log(nodes.front()) - 0.5,
                                                  std::log(nodes.back()) + 0.5);
        return std::exp(at(random));
      };
      const double px = pick(x), py = pick(y), pz = pick(z);
      const size_t i = plain_segment(x, px), j = plain_segment(y, py), k = plain_segment(z, pz);
      const auto along_z = [&](size_t a, size_t b) {
        return plain_line(z[k], grid.value(a, b, k), z[k + 1], grid.value(a, b, k + 1), pz);
      };
      const auto along_y = [&](size_t a) {
        return plain_line(y[j], along_z(a, j), y[j + 1], along_z(a, j + 1), py);
      };
      const double expected = plain_line(x[i], along_y(i), x[i + 1], along_y(i + 1), px);
      ASSERT_NEAR(grid.at(px, py, pz) / expected, 1, 1e-12) << "round " << round;
    }
  }
}

TEST(LogGrid3, never_falls_where_its_nodes_never_fall) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> growth(1.0, 3.0), at(0, 12);
  const std::vector<double> x = random_nodes(random, 5), y = random_nodes(random, 4),
                            z = random_nodes(random, 6);
  std::vector<double> values(x.size() * y.size() * z.size(), 1.0);
  for (size_t n = 0; n < values.size(); ++n) {
    const size_t plane = y.size() * z.size();
    double below = 1;
    if (n >= plane) below = std::max(below, values[n - plane]);
    if (n % plane >= z.size()) below = std::max(below, values[n - z.size()]);
    if (n % z.size() > 0) below = std::max(below, values[n - 1]);
    values[n] = below * growth(random);
  }
  const LogGrid3 grid({LogAxis(x), LogAxis(y), LogAxis(z)}, values);
  ASSERT_TRUE(grid.is_nondecreasing());
  for (int probe = 0; probe < 5000; ++probe) {
    const double a = std::exp(at(random)), b = std::exp(at(random)), c = std::exp(at(random));
    const double here = grid.at(a, b, c);
    ASSERT_GE(grid.at(a * 1.3, b, c), here * (1 - 1e-12));
    ASSERT_GE(grid.at(a, b * 1.3, c), here * (1 - 1e-12));
    ASSERT_GE(grid.at(a, b, c * 1.3), here * (1 - 1e-12));
  }
}

TEST(LogGrid3, notices_a_single_falling_node) {
  const LogAxis axis({1, 2, 4});
  std::vector<double> values(27, 5.0);
  EXPECT_TRUE(LogGrid3({axis, axis, axis}, values).is_nondecreasing());
  for (size_t n = 1; n < values.size(); ++n) {
    std::vector<double> dented = values;
    dented[n] = 4.9;
    EXPECT_FALSE(LogGrid3({axis, axis, axis}, dented).is_nondecreasing()) << n;
  }
}

}  // namespace
}  // namespace herdsim
