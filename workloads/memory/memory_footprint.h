// Peak memory of every pipeline stage, from the schedule's own order.
//
// The walk: a stage starts with its weights, gradients, optimizer state, buffers and what the
// device itself takes. Then it runs its passes in order. A forward pass adds what its chunk keeps
// (layer_activations.h) and holds its transients while it runs; a backward pass holds its own and
// frees the chunk at its end (a split one at the end of its weight half), when a stack that adds
// gradients up after the pass (gradient_copy_bytes) has all of them at once. The peak is the
// largest sum at any pass, or that of a sharded optimizer's gather through flat buffers after its
// step, and StageMemory names the moment.
//
// State, bytes a parameter on one rank (d = dp * cp, the ranks that share it; experts: dp * cp /
// ep):
//                weights    gradients g   optimizer (fp32 master, two moments)
//   kNone        2          g             12
//   kZero1       2          g             12 / d
//   kZero2       2          g / d         12 / d      and two layers of gradients on their way
//   kZero3       -          g / d         12 / d      the shard is the master; two layers gathered
//   kFsdpKeep    2          g             12 / d      gradients are summed over the micro-batches
//                                                     and reduced once, as Llama 3 does
// 12 is 8 with bf16 moments. g is 4 with fp32 accumulation. fp8 adds 2 to the weights of matrices
// (a copy and its transpose). Tied embeddings are on the first and the last stage, once where they
// are one stage.
//
// Logits: tokens * vocabulary / TP. A stock loss makes bf16 logits, an fp32 copy and one shifted by
// the maximum: 10 bytes, of which the fp32 softmax (4) stays until the backward pass. A fused one
// has no shifted copy: 6. Megatron-LM issue 525 died on exactly this tensor (4096 * 50304 * 4
// bytes), which the user's estimate did not have.
//
//   const auto memory = memory_footprint({model, plan, training, software, *row, shape, layouts});
//   memory[0].peak, memory[0].moment   // "forward of micro-batch 15, chunk 7"
#pragma once

#include <vector>

#include "sim/base/units.h"
#include "sim/metrics/step_result.h"
#include "sim/models/software_stack.h"
#include "workloads/memory/layer_activations.h"
#include "workloads/model_architecture.h"
#include "workloads/parallel_plan.h"
#include "workloads/schedules/schedule.h"
#include "workloads/stage_layout.h"

namespace herdsim {

// What no configuration file states. Each is an assumption; the range is what has been seen.
struct MemoryAssumptions {
  // CUDA context, cuBLAS and cuDNN workspaces, NCCL's own kernels: 0.5 to 1.2 GB.
  Bytes device_context = megabytes(750);
  // Buffers of one NCCL communicator (channels * connections * 4 MiB and the rest): 0.2 GB on one
  // node, up to 2.5 GB for the largest; Meta reports 10 GB a GPU in all before NCCLX and 4.2 GB
  // with it.
  Bytes communicator = megabytes(400);
  // What the caching allocator reserves and cannot use, of all it serves: 0 with expandable
  // segments, to 0.10.
  double fragmentation = 0.03;
};

// The references must outlive the call only.
struct MemoryQuestion {
  const ModelArchitecture& model;
  const ParallelPlan& plan;
  const Training& training;
  const SoftwareStack& software;
  const ScheduleRow& schedule;
  const ScheduleShape& shape;
  const std::vector<StageLayout>& layouts;
  MemoryAssumptions assumptions = {};

  // Of one micro-batch on one tensor-parallel group.
  int64_t tokens() const { return plan.micro_batch * training.sequence_length / plan.cp; }
};

// Parameters that one rank of a stage computes with: divided by TP and EP, not by data parallelism.
struct StageParameters {
  double matrices = 0;  // dense, with embedding and head
  double norms = 0;     // and what else is whole on every tensor rank
  double experts = 0;

  double total() const { return matrices + norms + experts; }
};
StageParameters stage_parameters(const ModelArchitecture& model, const ParallelPlan& plan,
                                 const StageLayout& layout);

// Requires: validated plan, shape and layouts; stage < shape.stages. Ensures: peak is the sum of
// its parts. Complexity: linear in the passes of the stage.
StageMemory stage_memory(const MemoryQuestion& question, int64_t stage);

// After the passes: the optimizer's step and, where it is sharded, the gather of what it updated.
// Requires: as stage_memory().
StageMemory memory_at_gather(const MemoryQuestion& question, int64_t stage);

// What the stage holds while each pass of its schedule's order runs; the largest is its peak.
// Requires: as stage_memory(). Complexity: linear in the passes of the stage.
std::vector<Bytes> memory_by_pass(const MemoryQuestion& question, int64_t stage);

// Every stage, in order.
std::vector<StageMemory> memory_footprint(const MemoryQuestion& question);

}  // namespace herdsim
