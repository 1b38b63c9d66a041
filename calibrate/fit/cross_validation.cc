#include "calibrate/fit/cross_validation.h"

#include <cmath>

#include "sim/base/fingerprint.h"

namespace herdsim {
namespace {

int fold(const Fingerprint& hash) { return static_cast<int>(hash.value() % kFolds); }

}  // namespace

int fold_of(const GemmMeasurement& row) {
  Fingerprint hash;
  // 1025 rows beside 1024; from 1 to 17 every number is a shape of its own.
  hash.add(row.shape.m > 17 ? row.shape.m / 2 * 2 : row.shape.m);
  hash.add(row.shape.n);
  hash.add(row.shape.k);
  return fold(hash);
}

int fold_of_weight(const GemmMeasurement& row) {
  Fingerprint hash;
  hash.add(row.shape.n);
  hash.add(row.shape.k);
  return fold(hash);
}

int fold_of(const AttentionMeasurement& row) {
  Fingerprint hash;
  hash.add(row.shape.batch);
  hash.add(row.shape.query_tokens);
  hash.add(row.shape.heads);
  hash.add(row.shape.kv_heads);
  hash.add(row.shape.head_dim);
  return fold(hash);
}

int fold_of(const StreamMeasurement& row) {
  Fingerprint hash;
  hash.add(static_cast<int>(row.traffic.stream));
  hash.add(row.traffic.moved);
  return fold(hash);
}

int fold_of(const CollectiveMeasurement& row) {
  Fingerprint hash;
  hash.add(row.kind);
  hash.add(row.ranks);
  hash.add(row.nodes);
  // All-gathers of ten ranks are a few bytes short of the power of two.
  hash.add(static_cast<int>(std::lround(4 * std::log2(static_cast<double>(row.size.count())))));
  return fold(hash);
}

}  // namespace herdsim
