// The training framework as a record of nameable facts: which kernels it calls, what it fuses, what it overlaps, how it
// accumulates. The same GPUs run one model 1 to 2 times slower for these reasons, so they are inputs with sources,
// shared by every run of a stack, and never a factor fitted to one run.
//
// Byte counts are HBM bytes (reads plus writes) of bf16 activations. "per token" counts the tokens of one micro-batch on
// one rank of a tensor-parallel group; `hidden` and `ffn` are the model's widths before division by TP.
#pragma once

#include <cstdint>
#include <string>

#include "sim/models/host_stalls.h"
#include "sim/models/kernel.h"

namespace herdsim {

// What happens to the transfers of tensor parallelism while GEMMs run.
enum class TpOverlap : uint8_t {
  kNone,     // every all-gather and reduce-scatter is waited for
  kChunked,  // GEMMs and transfers split in chunks; first and last chunk exposed
};

struct ElementwiseTraffic {
  // Bytes a token and layer: hidden_passes * hidden + ffn_passes * ffn (already in bytes, not elements).
  double hidden_bytes = 0;
  double ffn_bytes = 0;
  StreamClass stream = StreamClass::kFused;
};

struct SoftwareStack {
  std::string name;

  std::string attention_kernel = "cudnn9";  // a row of the profile's attention curves
  ElementwiseTraffic forward{.hidden_bytes = 24, .ffn_bytes = 6};
  ElementwiseTraffic backward{.hidden_bytes = 50, .ffn_bytes = 10};
  double logit_bytes = 12;  // a logit, forward and backward of the loss together
  StreamClass logit_stream = StreamClass::kFused;

  // Weight gradients: bytes a parameter and micro-batch to accumulate (8: fused into the GEMM's epilogue in fp32).
  double gradient_accumulation_bytes = 8;
  StreamClass gradient_stream = StreamClass::kFused;
  DataType gradient_accumulation_type = DataType::kFp32;
  DataType gradient_reduce_type = DataType::kFp32;
  DataType parameter_gather_type = DataType::kBf16;
  // With fp8 products: parameters of layers are kept in fp8 beside the master copy, and so gathered by a sharded optimizer;
  // FSDP (ZeRO-3) gathers them as above.
  bool parameter_gather_fp8 = false;
  double optimizer_bytes = 28;  // a parameter of the shard: Adam with an fp32 master copy

  TpOverlap tp_overlap = TpOverlap::kNone;
  int64_t tp_overlap_chunks = 4;
  // The backward pass gathers the sequence-parallel inputs again instead of keeping them gathered.
  bool tp_regather_in_backward = true;
  // That gather runs beside the data gradient, and the reduce-scatter of the input gradient beside the weight gradient
  // (Megatron-LM without user buffers does both).
  bool tp_backward_overlap = true;
  // A product runs on a rank's own tokens while those of the others are gathered, and on the rest of them after.
  bool tp_own_tokens_first = false;
  // All-reduces over the tensor-parallel ranks: of the loss, whose logits are split by vocabulary, in a forward pass;
  // and, once a step, of the norms' gradients of a layer, where each tensor is reduced by itself. 0: they are reduced
  // together, which takes no time worth counting.
  int64_t loss_reductions = 1;
  int64_t norm_reductions_per_layer = 0;
  // With fp8 products: their inputs are cast before they are gathered, and the forward pass scatters partial sums in fp8,
  // so that these transfers move a byte an element (Transformer Engine's user buffers with fp8_buf). Input gradients are
  // reduced in bf16.
  bool tp_fp8_transfers = false;
  // The gathers alone are so (torchao's float8 tensor parallel styles).
  bool tp_fp8_gathers = false;
  // Each of the products of one input (q, k and v; gate and up) gathers it for itself, and has its gradient reduced by
  // itself: DTensor styles whose input layouts are those of single modules.
  bool tp_gathers_apart = false;
  bool tp_reduces_apart = false;
  // Every tensor rank has the whole table of embeddings, unless it is tied to the head.
  bool tp_replicates_table = false;
  // Logits are gathered, and every tensor rank takes the loss of all of them.
  bool tp_gathers_logits = false;
  // Of the output head on the last of several stages: weight gradients of so many micro-batches
  // wait for the end of the stage's passes, where it would wait for the others (Megatron's
  // defer_embedding_wgrad_compute). Their inputs are kept.
  int64_t head_weight_gradients_deferred = 0;
  bool p2p_async = true;       // pipeline transfers run beside compute
  // Without sequence parallelism each tensor rank sends its share of a stage's output, and the receivers gather it over
  // NVLink, a tenth of the time and not counted; or else each sends all of it.
  bool p2p_scatter_gather = false;
  // ZeRO-2 and 3 reduce the gradients of the last micro-batch alone and sum those of the others up unsharded (FSDP2's
  // set_requires_gradient_sync), or else those of each.
  bool dp_reduces_once = false;
  bool dp_overlap = true;      // gradient reduction and parameter gathering run beside compute
  // Sharded optimizers: updated parameters are gathered beside the next forward pass, or else before it begins.
  bool dp_gather_overlap = true;
  // Units are gathered and reduced together, in buckets of at least so many parameters, or so many for each rank that
  // shares them, if that is more; 0: each by itself. Optionally all model chunks but the first are one bucket each.
  double dp_bucket_parameters = 0;
  double dp_bucket_parameters_per_rank = 0;
  bool dp_bucket_whole_chunks = false;
  // Experts of a rank run in one kernel, or else one product after another.
  bool grouped_gemm = true;
  // Shared experts run beside the all-to-all of the routed ones.
  bool shared_expert_overlap = false;
  // A forward and a whole backward pass of different micro-batches that follow each other run as a pair, the transfers of
  // each beside the kernels of the other (DualPipe; Megatron Core's overlap_moe_expert_parallel_comm).
  bool pass_overlap = false;
  // In which tokens are sent to experts; results and gradients travel in bf16.
  DataType expert_dispatch_type = DataType::kBf16;
  // A token goes once to each host and GPU that has experts of it (DeepEP, HybridEP), or else once for every expert.
  bool expert_dispatch_once = false;
  // Small kernels of a layer of experts, a launch each: routing, sorting and counting, in a forward and a backward pass;
  // and with fp8 products the largest value, scale and cast of each tensor that an expert's products read.
  double expert_kernels_forward = 0;
  double expert_kernels_backward = 0;
  double expert_fp8_kernels = 0;
  // Where the model has them, beside the activation's traffic: clamping what it reads, bytes a
  // channel of the experts' width and token in each direction; and the bias of an expert's last
  // product, bytes a channel of hidden and token.
  double clamp_forward_ffn_bytes = 0;
  double clamp_backward_ffn_bytes = 0;
  double expert_bias_forward_bytes = 0;
  double expert_bias_backward_bytes = 0;
  // Bytes a token and layer kept for the backward pass, beside what attention needs: same form as traffic.
  double activation_hidden_bytes = 10;
  double activation_ffn_bytes = 6;
  // With fp8 products: their inputs are kept in fp8 for the weight gradients, where they are the fp8 copies already; and
  // what the activation function reads is kept in fp8, too.
  bool fp8_keeps_inputs = false;
  bool fp8_keeps_activation_inputs = false;
  // With fp8 products: bytes an element kept of the attention's output, which is read by its own backward pass and by the
  // weight gradient of the projection. 3: in bf16 for the one and in fp8 for the other.
  double fp8_attention_output_bytes = 2;
  // What experts send back is kept for the gradient of the router's weights; not where these are applied before the
  // experts' last product.
  bool keeps_expert_results = true;
  // Bytes a parameter of a gradient beside the one it is accumulated in: what a backward pass wrote and is still to be added.
  double gradient_copy_bytes = 0;
  // Bytes a parameter of flat buffers through which replicas reduce gradients, beside both; there is none without replicas.
  double gradient_bucket_bytes = 0;
  // A sharded optimizer gathers updated parameters through a flat copy of what it sends and of what comes.
  bool parameter_gather_flat = false;
  // Whole [tokens, hidden] tensors of asynchronous tensor-parallel transfers that cannot be reused yet, because the host has
  // launched far ahead of the GPU (PyTorch's record_stream).
  double transfer_tensors_in_flight = 0;

  // Ring attention, for every piece of K and V but a rank's own. HBM bytes an element of the output to merge the piece
  // into it, forward, and of the input's gradients to add the piece's, backward; the factors of the log-sum-exps are small.
  // Keys and values repeated for every query head go round.
  double ring_merge_bytes = 6;
  double ring_gradient_bytes = 0;
  bool ring_repeats_kv = false;

  // Copies that tensor-parallel transfers need: bytes an element of the gathered tensor, once a transfer (a DTensor
  // gathers along the batch and concatenates along the sequence: read and write, 4).
  double tp_copy_bytes = 0;
  // Copies round attention kernel "fa2", bytes a token and hidden channel each pass (unpad and pad of packed sequences).
  double unpad_hidden_bytes = 0;
  // Full recomputation stops at the last tensor that the backward pass needs, so that the layer's last product is not made
  // again (PyTorch's non-reentrant checkpoint, XLA's dead-code elimination; Megatron runs the whole layer).
  bool recompute_stops_early = true;
  // Of the cast of activations that the profile's fp8 products contain, the share this stack pays; the rest is fused into
  // the kernel before.
  double fp8_cast_share = 1;
  // What casts the operands of fp8 products in kernels apart from them (torchao under torch.compile): HBM bytes an element.
  // `cast`: the scale, and the copy that the product of the same pass reads: of its input, in each pass that makes it; of
  // the gradient of its output; of its weights, a micro-batch. Before a gather in fp8 of what a rank sends, after one in
  // bf16 of all of it. `turn`: the copies that the backward pass reads the other way round: input and gradient for the
  // weight gradient, weights for the input gradient.
  double fp8_input_cast_bytes = 0;
  double fp8_input_turn_bytes = 0;
  double fp8_gradient_cast_bytes = 0;
  double fp8_gradient_turn_bytes = 0;
  double fp8_weight_cast_bytes = 0;
  double fp8_weight_turn_bytes = 0;
  // Time of an fp8 product over that of one with a scale a tensor, which the profile has (scales of rows).
  double fp8_product_slowdown = 1;

  // The host's own time to launch a layer. It runs ahead of the GPU, which waits where it catches up.
  double host_microseconds_per_layer_forward = 0;
  double host_microseconds_per_layer_backward = 0;
  // The host launches a kernel when the one before is done (CUDA_LAUNCH_BLOCKING=1): its time to
  // launch a layer adds to the GPU's.
  bool launch_blocking = false;
  double host_microseconds_per_transfer = 0;  // beside, for each tensor-parallel collective of the layer
  double host_microseconds_per_head = 0;      // to launch the head and the loss, in each pass
  double host_microseconds_per_message = 0;   // between a message that it waits for (p2p_async false) and what follows
  // Beside, in a layer's backward pass where the optimizer's state is shared out: a rank's part of each gradient is set
  // anew.
  double host_microseconds_per_sharded_layer = 0;
  double host_microseconds_per_expert_layer = 0;  // beside, for each pass of a layer of experts
  // The host waits for the counts of tokens of each expert before it launches their exchange, and takes this long to go on;
  // 0: it does not wait, as where experts have a fixed capacity.
  double host_microseconds_for_expert_counts = 0;
  double host_microseconds_per_layer_optimizer = 0;  // to launch the update of a layer's tensors; a floor of the update
  double host_milliseconds_per_step = 0;  // loader hand-over, logging, garbage collection, python
  HostStalls host_stalls;
  // Standard deviation over GPUs of the time a step takes beyond its mean: the slowest holds all up, once a step.
  double step_jitter_milliseconds = 0;
  // Bus bandwidths that its jobs measure of all-gathers and reduce-scatters are of lists of tensors, which PyTorch
  // copies out of one or into one.
  bool measures_lists = false;
  // Its jobs split the sequence over the tensor-parallel ranks unless they say otherwise; with experts they have to.
  bool sequence_parallel = true;

  // Relative standard deviation of GPU speed across the job: a synchronous step runs at the pace of the slowest.
  double gpu_speed_sigma = 0;
  // Of the stack's kernels, beside what the device sustains in training (DeviceProfile::training_clock).
  double clock_factor = 1.0;
};

}  // namespace herdsim
