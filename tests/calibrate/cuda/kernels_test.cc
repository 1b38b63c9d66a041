// The own kernels against their references in double precision, run on the processor.
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <utility>
#include <vector>

#include "calibrate/cuda/cuda_kernels.h"
#include "calibrate/cuda/kernel_references.h"

namespace herdsim::cuda {

extern bool last_thread_first;  // emulated_gpu.h, which changes words that others use

}  // namespace herdsim::cuda

namespace herdsim::cuda {
namespace {

TEST(OwnKernels, compute_what_their_references_do) {
  // Rows narrower than a warp, than a block, and of several steps with a remainder.
  constexpr std::pair<size_t, size_t> kRowsAndWidths[] = {{1, 2}, {6, 30}, {2, 1030}};
  for (const auto& [rows, width] : kRowsAndWidths) {
    for (const bool backwards : {false, true}) {
      SCOPED_TRACE(testing::Message() << rows << " rows of " << width);
      last_thread_first = backwards;
      EXPECT_NO_THROW(check_own_kernels(rows, width));
    }
  }
}

TEST(OwnKernels, random_numbers_differ_by_seed_and_have_no_bias) {
  std::vector<float> first(1 << 16), second(first.size());
  fill_random_floats(first.data(), first.size(), 1, nullptr);
  fill_random_floats(second.data(), second.size(), 2, nullptr);
  double sum = 0, same = 0;
  for (size_t i = 0; i < first.size(); ++i) {
    EXPECT_LE(std::abs(first[i]), 0.5F);
    sum += first[i];
    same += first[i] == second[i] ? 1 : 0;
  }
  // 5 sigma of the mean of uniform numbers: below 1e-6 a run, and the seed is fixed.
  EXPECT_LT(std::abs(sum / static_cast<double>(first.size())),
            5 * std::sqrt(1.0 / 12 / static_cast<double>(first.size())));
  EXPECT_LT(same, 10);
}

TEST(OwnKernels, fp8_numbers_are_finite_and_about_one) {
  std::vector<uint8_t> values(4096);
  fill_random_fp8(values.data(), values.size(), 3, nullptr);
  std::set<uint8_t> seen(values.begin(), values.end());
  EXPECT_EQ(seen.size(), 32u);
  for (const uint8_t bits : seen) EXPECT_EQ(bits & 0x70, 0x30) << int{bits};
}

}  // namespace
}  // namespace herdsim::cuda
