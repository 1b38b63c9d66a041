// A forward pass and a whole backward pass, of another micro-batch or chunk, that a stage runs by turns: from one to
// the other after each transfer that the next kernels wait for, so that it runs beside the other's kernels.
//
// Their ops are put in order when all are known; until then they are *pending* and have ids of their own.
//
//   const OpId op = pair.add({work, dependencies});   // of the first pass
//   pair.begin_second();
//   ...                                               // of the second
//   pair.place(works, builder, anchors, sends);       // now they are in the program, and the pair is empty again
#pragma once

#include <optional>
#include <vector>

#include "sim/opgraph/op_graph.h"
#include "workloads/known_passes.h"
#include "workloads/message_table.h"
#include "workloads/stage_layout.h"

namespace herdsim {

// Says where a send goes. `chunk` stands in Op::receive until connect_messages() puts the op that receives.
void address_send(ProgramBuilder& builder, OpId send, const ChunkPlace& peer, OpId chunk);

class PassPair {
 public:
  struct PendingOp {
    WorkId work;
    std::vector<OpId> dependencies;  // pending ones too
    int32_t micro_batch = -1, chunk = -1;
    StepPhase phase = StepPhase::kUnknown;
    std::optional<ChunkPlace> peer = {};
    OpId receive = {};
  };

  static bool is_pending(OpId op) { return op.index() >= kFirst; }

  OpId add(PendingOp op) {
    ops_.push_back(std::move(op));
    return OpId(kFirst + ops_.size() - 1);
  }
  // Requires: is_pending(op).
  WorkId work(OpId op) const { return ops_[op.index() - kFirst].work; }
  void address(OpId send, const ChunkPlace& peer, OpId chunk);
  // What the table holds there is pending: place() puts the op of the program.
  void set_start(MessageTable& table, int64_t chunk, int64_t micro_batch) {
    starts_.push_back({&table, chunk, micro_batch});
  }

  void begin_second() { second_ = ops_.size(); }
  // Puts all ops into the program. Ensures: no anchor and no table holds a pending op; `sends` has those that were
  // addressed.
  void place(const TypedVector<WorkId, Work>& works, ProgramBuilder& builder, Anchors& anchors,
             std::vector<OpId>& sends);

 private:
  // Pending ops are numbered from here.
  static constexpr size_t kFirst = size_t{1} << 31;

  struct Start {
    MessageTable* table;
    int64_t chunk, micro_batch;
  };

  OpId put(const PendingOp& op, const std::vector<OpId>& placed, ProgramBuilder& builder, std::vector<OpId>& sends);

  std::vector<PendingOp> ops_;
  size_t second_ = 0;  // the first op of the second pass
  std::vector<Start> starts_;
  std::vector<OpId> dependencies_;  // of put(), kept for its memory
};

}  // namespace herdsim
