// How good a fit is on what it has not seen: every shape is predicted by a fit that was made
// without it.
//
// Folds are of shapes, not of rows: repetitions of a shape, the same shape in another data set, and
// m beside m + 1 fall into one fold, so that nothing a fit predicts has a twin among what it
// learned from.
#pragma once

#include "calibrate/profile/error_summary.h"
#include "calibrate/profile/measurements.h"

namespace herdsim {

constexpr int kFolds = 5;

// The same on every machine: a hash of the shape.
int fold_of(const GemmMeasurement&);
// Harder: a weight matrix (n, k) is left out with every m, so what is predicted lies between nodes
// nobody measured.
int fold_of_weight(const GemmMeasurement&);
int fold_of(const AttentionMeasurement&);
int fold_of(const StreamMeasurement&);
int fold_of(const CollectiveMeasurement&);

}  // namespace herdsim
