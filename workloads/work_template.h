// Templates of work: a list of steps, each a piece of Work and the earlier steps it waits for
// (kBefore: whatever came before the template). Lowering stamps templates into programs once a
// layer and micro-batch.
//
//   TemplateBuilder t(spec, works);
//   int at = t.compute("norm", {norm}, {kBefore});
//   at = t.gather_then("qkv", input, {qkv}, {at});      // all-gather over TP, then the product
//   t.then_reduce("proj", output, {proj}, {at});
#pragma once

#include <string>
#include <vector>

#include "sim/opgraph/op_graph.h"
#include "workloads/workload_spec.h"

namespace herdsim {

constexpr int kBefore = -1;

struct TemplateStep {
  WorkId work;
  std::vector<int> after;  // indices into the template, or kBefore
};

using WorkTemplate = std::vector<TemplateStep>;

// Builds one template, appending each new piece of work to `works`. Every function returns the step
// to wait for, which is one that came before where there is nothing to do.
class TemplateBuilder {
 public:
  TemplateBuilder(const WorkloadSpec& spec, TypedVector<WorkId, Work>& works)
      : spec_(spec), works_(works) {}

  // Runs kernels back to back.
  int compute(std::string name, std::vector<Kernel> kernels, std::vector<int> after);

  // A transfer of the tensor-, context- or expert-parallel group; none where the group is one rank.
  int tensor(CollectiveKind kind, Bytes bytes, std::vector<int> after);
  int context(CollectiveKind kind, Bytes bytes, std::vector<int> after);
  int expert(CollectiveKind kind, Bytes bytes, std::vector<int> after);
  // Tokens to their experts or results back: `copies` has one for every expert that a token visits.
  int token_exchange(Bytes copies, std::vector<int> after);

  // Time of the host between what it waits for and what waits for it; none where it takes none.
  int host(std::string name, double microseconds, std::vector<int> after);

  // Gathers `input`, split by sequence, and runs the block's first kernels. With chunked overlap
  // the products start when the first chunk is there and the rest arrives beside them; the next
  // kernels wait for both.
  int gather_then(std::string name, Bytes input, std::vector<Kernel> kernels,
                  std::vector<int> after);

  // Runs the last kernels of a block and reduces `output` over the group, in chunks where the stack
  // overlaps. Without sequence parallelism an all-reduce in bf16 does it.
  int then_reduce(std::string name, Bytes output, std::vector<Kernel> kernels,
                  std::vector<int> after);

  int last() const { return static_cast<int>(steps_.size()) - 1; }
  WorkTemplate build() { return std::move(steps_); }

 private:
  static constexpr int kNone = -2;

  // The gathered tensor, in bf16, read and written by a kernel of its own.
  int copy(Bytes tensor, std::vector<int> after);
  std::pair<Kernel, Kernel> split_by_owner(const Kernel& product) const;
  int collective(Communicator communicator, Stream stream, TimeTerm term, CollectiveKind kind,
                 Bytes bytes, std::vector<int> after);
  int add(Work work, std::vector<int> after);

  const WorkloadSpec& spec_;
  TypedVector<WorkId, Work>& works_;
  WorkTemplate steps_;
  int pending_ = kNone;  // the rest of a chunked gather; the next kernels wait for it
};

}  // namespace herdsim
