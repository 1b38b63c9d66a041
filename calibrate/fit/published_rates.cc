#include "calibrate/fit/published_rates.h"

#include <array>

#include "calibrate/profile/collective_time.h"

namespace herdsim {

const std::vector<PrintedAttention>& printed_h100_attention() {
  constexpr AttentionPass kForward = AttentionPass::kForward;
  constexpr AttentionPass kBackward = AttentionPass::kBackward;
  static const std::vector<PrintedAttention> table = {
      {"cudnn9",
       kForward,
       true,
       {{512, 315}, {4096, 518}, {8192, 529}, {16384, 539}},
       Evidence::kPublished,
       "cuDNN 9 bars of the FlashAttention-3 figures (Dao-AILab/flash-attention @0251105), H100 "
       "SXM, fp16"},
      // 499 and 518 at 4k and 8k, 305 and 516 at the ends, all without a mask.
      {"cudnn9",
       kBackward,
       false,
       {{512, 305}, {4096, 499}, {8192, 518}, {16384, 516}},
       Evidence::kPublished,
       "cuDNN 9 bars of the FlashAttention-3 figures (Dao-AILab/flash-attention @0251105), H100 "
       "SXM, fp16"},
      {"cudnn9",
       kBackward,
       true,
       {{512, 183}, {1024, 257}, {2048, 366}, {4096, 470}, {8192, 518}, {16384, 518}},
       Evidence::kAssumed,
       "unpublished; geometric mean of the causal backward of FA3 and the full backward of cuDNN "
       "9, at most the latter"},
      {"fa2",
       kForward,
       true,
       {{512, 191}, {1024, 260}, {2048, 298}, {4096, 319}, {8192, 333}, {16384, 335}},
       Evidence::kPublished,
       "FA2 bars of the FlashAttention-3 figures (Dao-AILab/flash-attention @0251105), H100 SXM"},
      {"fa2",
       kBackward,
       true,
       {{512, 154}, {1024, 209}, {2048, 254}, {4096, 285}, {8192, 299}, {16384, 325}},
       Evidence::kPublished,
       "flash2_h100_fwd_bwd_benchmark.png (Dao-AILab/flash-attention @0251105): forward plus "
       "backward, less the forward"},
      // One pass of forward and 2.5 of backward have the rate that training runs show, 172 at their
      // clock; runs that make the forward pass again show its own, 235. What both fall to in short
      // sequences has the shape of the same kernel on A100 (50, 61, 68, 74, 78, 80 from 512 to 16k).
      {"triton-fa1",
       kForward,
       true,
       {{512, 166.5}, {1024, 203.4}, {2048, 226.6}, {4096, 247}, {16384, 247}, {32768, 247}},
       Evidence::kPublished,
       "identified from the sequence scaling of MPT-1B runs on 8 H100 (llm-foundry @b2a43a147 "
       "benchmarks), 2k to 32k tokens: 172 in both passes at the clock of training, 0.95 of that of "
       "the tables; 235 in the forward pass from runs of MPT-1B and 13B at 16k to 64k tokens that recompute it"},
      {"triton-fa1",
       kBackward,
       true,
       {{512, 110.2}, {1024, 134.6}, {2048, 150}, {4096, 163.5}, {16384, 163.5}, {32768, 163.5}},
       Evidence::kPublished,
       "identified from the sequence scaling of MPT-1B runs on 8 H100 (llm-foundry @b2a43a147 "
       "benchmarks), 2k to 32k tokens: 172 in both passes at the clock of training, 0.95 of that of "
       "the tables; 155 in the backward pass from runs of MPT-1B and 13B at 16k to 64k tokens that recompute it"},
  };
  return table;
}

AttentionShape printed_shape(const PrintedAttention& printed, double tokens) {
  constexpr int64_t kTokensABatch = 16384, kHeads = 16;
  const auto n = static_cast<int64_t>(tokens);
  return {.batch = std::max<int64_t>(1, kTokensABatch / n),
          .query_tokens = n,
          .kv_tokens = n,
          .heads = kHeads,
          .kv_heads = kHeads,
          .head_dim = 128,
          .mask_fraction = printed.causal ? 0.5 : 1.0,
          .pass = printed.pass};
}

std::vector<CollectiveCurve> printed_h100_all_reduce() {
  struct Row {
    int64_t ranks;
    // GB/s of bus bandwidth at 1M, 4M, 16M, 64M, 256M, 1G, 4G, 16G; zero where the figure shows no
    // point.
    std::array<double, 8> bus;
  };
  static constexpr std::array<Row, 9> kRows = {{{32, {16, 55, 126, 230, 314, 352, 365, 0}},
                                                {64, {0, 40, 82, 191, 309, 348, 372, 379}},
                                                {128, {9, 30, 72, 177, 297, 350, 372, 380}},
                                                {256, {8, 25, 67, 167, 276, 344, 367, 377}},
                                                {512, {7, 21, 58, 150, 265, 340, 359, 375}},
                                                {1024, {6, 19, 47, 123, 255, 331, 359, 370}},
                                                {2048, {5, 0, 43, 125, 233, 311, 354, 369}},
                                                {4096, {4, 13, 36, 109, 225, 296, 345, 374}},
                                                {8192, {4, 13, 33, 108, 217, 307, 348, 367}}}};
  std::vector<CollectiveCurve> curves;
  for (const Row& row : kRows) {
    CollectiveCurve curve{.kind = "all_reduce", .ranks = row.ranks, .nodes = row.ranks / 8};
    curve.provenance = {
        Evidence::kPublished,
        "NVIDIA GTC 2024, NCCL session, NVLSTree on H100 with 8 x 400 Gb/s, digitised to 3 GB/s"};
    int64_t size = 1 << 20;
    for (const double bus : row.bus) {
      if (bus > 0) {
        const double seconds =
            static_cast<double>(size) * bus_factor(curve.kind, row.ranks) / (bus * 1e9);
        curve.points.push_back(
            collective_point(curve.kind, row.ranks, Bytes(size), seconds_rounded_up(seconds)));
      }
      size *= 4;
    }
    curves.push_back(std::move(curve));
  }
  return curves;
}

}  // namespace herdsim
