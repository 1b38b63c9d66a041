// The whiteboard of parallel training: when a layer's transfers hide behind its products, what a
// pipeline idles, what state weighs, what training costs. Functions of numbers, for `plan
// --formulas`, which prints each beside the simulation.
//
// After "How to Scale Your Model" (jax-ml.github.io/scaling-book, chapters 5 and 6). All assume
// transfers at line rate, products at peak and perfect overlap; nothing here is a prediction.
//
//   C  FLOP/s of a GPU            B  tokens a step        D  hidden        F  feed-forward width
//   W  bytes/s into a GPU over the links of a collective, one direction: what a GPU receives of an
//      all-gather arrives over one direction of its link, so 450 GB/s for NVLink of 900 GB/s both
//      ways, and 50 GB/s for a NIC of 400 Gb/s
//   X  ways of FSDP, Y  ways of TP, N = X Y GPUs;  M  mesh axes a collective can use at once
//
//   const double nic = flops_per_byte(teraflops(989), gigabytes_per_second(50));    // 19,780
//   const double nvlink = flops_per_byte(teraflops(989), gigabytes_per_second(450));  // 2,198
//   fsdp_and_tp_tokens_bound(nic, nvlink, 28'672)   // 1,516 tokens a GPU
#pragma once

#include <cstdint>

#include "sim/base/units.h"

namespace herdsim {

// alpha = C / W: products to do for each byte that arrives, to hide its transfer.
double flops_per_byte(FlopRate compute, Bandwidth link);

// Data parallel, plain or FSDP: a layer's two all-reduces of gradients move 8 D F / W, its products
// take 8 B D F / (X C). Compute-bound from B / X = alpha / M tokens a data-parallel rank.
double data_parallel_tokens_bound(double alpha, double axes = 1);

// TP: 4 B D bytes a layer against 4 B D F / Y FLOPs, whatever the batch. Compute-bound below this
// Y.
double tensor_parallel_limit(double ffn, double alpha, double axes = 1);
// The same the other way: the least F for so many ways.
double tensor_parallel_least_ffn(double ways, double alpha, double axes = 1);

struct MeshSplit {
  double fsdp = 0, tp = 0;  // ways; their product is the GPUs
};
// FSDP takes F X / (N W_x M_x), TP takes B / (X W_y M_y); equal at
//   X^2 = (B / F) N (alpha_tp M_x) / (alpha_fsdp M_y).
MeshSplit optimal_split(double tokens, double ffn, double gpus, double alpha_fsdp, double alpha_tp,
                        double axes_ratio = 1);  // M_x / M_y
// At that split compute-bound from B / N = alpha_fsdp alpha_tp / (M_x M_y F) tokens a GPU.
double fsdp_and_tp_tokens_bound(double alpha_fsdp, double alpha_tp, double ffn, double axes = 1);

// The bubble as a share of the whole: b / (1 + b) of the busy time's (p - 1) / (v m).
double bubble_share(int64_t stages, int64_t micro_batches, int64_t virtual_stages);
// Throughput at `fewer` micro-batches over that at `more`, if nothing but the bubble differs.
double bubble_slowdown(int64_t stages, int64_t more, int64_t fewer, int64_t virtual_stages);

// Mixed precision with Adam, bytes a parameter. Gradients are reduced in bf16 in some stacks and
// fp32 in others; this is the textbook's 16.
struct StateLedger {
  double weights = 2, gradients = 2, master = 4, first_moment = 4, second_moment = 4;

  double bytes_a_parameter() const {
    return weights + gradients + master + first_moment + second_moment;
  }
};
double largest_model_parameters(Bytes memory, const StateLedger& ledger = {});
int64_t least_gpus_for_state(double parameters, Bytes memory, const StateLedger& ledger = {});

// 6 a parameter and token; attention comes on top.
double training_flops(double parameters, double tokens);
double training_days(double flops, double gpus, double flops_per_gpu);
int64_t gpus_for_days(double flops, double days, double flops_per_gpu);
// FLOP/s a GPU that so many GPUs need to be done in so many days.
double rate_for_days(double flops, double gpus, double days);

}  // namespace herdsim
