// Rates that public sources print in tables and figures too small to be files, each with its
// source: attention kernels nobody publishes a grid of, and all-reduces of thousands of GPUs.
#pragma once

#include <string_view>
#include <vector>

#include "calibrate/fit/attention_fit.h"
#include "sim/models/device_profile.h"

namespace herdsim {

// One curve of a figure. The shapes are those of the FlashAttention benchmarks: 16,384 tokens a
// batch, hidden size 2,048, head dimension 128.
struct PrintedAttention {
  std::string_view kernel;
  AttentionPass pass;
  bool causal;
  std::vector<LogCurve::Point> rates;  // tokens, TFLOP/s
  Evidence evidence;
  std::string_view source;
};

// H100 SXM: cudnn9, fa2 and triton-fa1.
const std::vector<PrintedAttention>& printed_h100_attention();

// Shape of one point of such a curve.
AttentionShape printed_shape(const PrintedAttention& printed, double tokens);

// All-reduce over H100 nodes of 8 GPUs and 8 x 400 Gb/s, NVLSTree, digitised to +-3 GB/s of bus
// bandwidth.
std::vector<CollectiveCurve> printed_h100_all_reduce();

}  // namespace herdsim
