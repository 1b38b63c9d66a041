// Fits the rate of one attention kernel over tokens, head dimension and parallel work.
//
//   time = flops / (rate_d(tokens) * fill(tiles per SM)) + call + per_token * tokens + per_kv_byte
//   * bytes of K and V
//                                                        + per_kv_row * rows of K
//
// Public tables time the attention layer of an inference framework, which also writes its key-value
// cache; the last three terms are that, one set a source. They are fitted to be taken away:
// training does not pay them, and the result holds the kernel alone. Gauss-Newton with errors
// reweighted towards least absolute ones.
#pragma once

#include <vector>

#include "calibrate/fit/cross_validation.h"
#include "calibrate/profile/measurements.h"
#include "sim/models/device_profile.h"

namespace herdsim {

// What a measuring framework adds to the kernel.
struct AttentionOverhead {
  double call_seconds = 0;
  double token_seconds = 0;
  double kv_byte_seconds = 0;
  double kv_row_seconds = 0;

  double seconds(const AttentionShape& shape) const;
};

struct AttentionTile {
  int64_t head_dim = 128;
  int64_t rows = 128;
  int64_t keys = 128;
};

struct AttentionFitPlan {
  bool causal = true;
  std::vector<AttentionTile> tiles;  // a curve each
  std::vector<double> tokens;        // points of the curves
  int64_t sms = 132;
};

struct AttentionFit {
  std::vector<AttentionCurve> curves;       // forward; no provenance yet
  LogCurve fill;                            // causal only
  std::vector<AttentionOverhead> overhead;  // one a source
};

// `sources` hold forward rows of one mask, one vector a data set. Rows of head dimensions without a
// tile, and rows whose fold is `left_out`, are not looked at.
AttentionFit fit_attention(const std::vector<std::vector<AttentionMeasurement>>& sources,
                           const AttentionFitPlan& plan, int left_out = -1);

void cross_validate_attention(const std::vector<std::vector<AttentionMeasurement>>& sources,
                              const AttentionFitPlan& plan, const DeviceProfile& device,
                              const std::string& name, ErrorTable& errors);

// Rates as a benchmark printed them, of known shapes, turned into points of a saturated curve:
// attention_cost of the kernel with that curve gives the printed rate back.
struct PrintedRate {
  AttentionShape shape;
  double teraflops = 0;
};
LogCurve saturated_rates(const std::vector<PrintedRate>& printed, const AttentionCurve& curve,
                         const AttentionKernel& kernel, int64_t sms);

}  // namespace herdsim
