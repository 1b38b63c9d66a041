// The nearest table that never falls: weighted least squares under order constraints.
//
// Times of kernels grow with every size; measured and fitted ones do so only nearly. Taking running
// maxima would let one spike lift everything after it, so the nearest monotone table is found
// instead: along one axis by pooling adjacent violators (Ayer et al. 1955), on a grid by Dykstra's
// alternating projections over the axes (1983).
#pragma once

#include <array>
#include <cstddef>
#include <vector>

namespace herdsim {

// Requires: as many weights as values, all positive.
// Ensures: never falls; unchanged where `values` never fell. Complexity: linear.
void make_nondecreasing(std::vector<double>& values, const std::vector<double>& weights);

// A grid of sizes[0] x sizes[1] x sizes[2] values, the last axis fastest.
// Ensures: never falls along any axis.
void make_grid_nondecreasing(const std::array<size_t, 3>& sizes, std::vector<double>& values,
                             const std::vector<double>& weights);

}  // namespace herdsim
