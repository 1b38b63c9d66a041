#include "workloads/pass_pair.h"

namespace herdsim {

void address_send(ProgramBuilder& builder, OpId send, const ChunkPlace& peer, OpId chunk) {
  builder.op(send).peer = ProgramId(static_cast<size_t>(peer.stage));
  builder.op(send).receive = chunk;
}

void PassPair::address(OpId send, const ChunkPlace& peer, OpId chunk) {
  PendingOp& op = ops_[send.index() - kFirst];
  op.peer = peer;
  op.receive = chunk;
}

void PassPair::place(const TypedVector<WorkId, Work>& works, ProgramBuilder& builder, Anchors& anchors,
                     std::vector<OpId>& sends) {
  std::vector<OpId> placed(ops_.size(), OpId(kFirst));
  size_t next[] = {0, second_};
  const size_t end[] = {second_, ops_.size()};
  for (size_t from = 0; next[0] < end[0] || next[1] < end[1]; from = 1 - from) {
    for (bool waits = false; !waits && next[from] < end[from]; ++next[from]) {
      waits = works[ops_[next[from]].work].kind == WorkKind::kCollective;
      placed[next[from]] = put(ops_[next[from]], placed, builder, sends);
    }
  }
  const auto settle = [&](OpId& op) {
    if (is_pending(op)) op = placed[op.index() - kFirst];
  };
  for (const Start& start : starts_) {
    OpId op = start.table->receive(start.chunk, start.micro_batch);
    settle(op);
    start.table->set_receive(start.chunk, start.micro_batch, op);
  }
  for (std::optional<OpId>& anchor : anchors) {
    if (anchor) settle(*anchor);
  }
  starts_.clear();
  ops_.clear();
}

OpId PassPair::put(const PendingOp& op, const std::vector<OpId>& placed, ProgramBuilder& builder,
                   std::vector<OpId>& sends) {
  dependencies_.clear();
  for (const OpId before : op.dependencies) {
    const OpId at = is_pending(before) ? placed[before.index() - kFirst] : before;
    // A gather that was to wait for the other pass of the pair goes ahead.
    if (!is_pending(at)) dependencies_.push_back(at);
  }
  const OpId id = builder.add(op.work, dependencies_, op.micro_batch, op.chunk);
  builder.op(id).phase = op.phase;
  if (op.peer) {
    address_send(builder, id, *op.peer, op.receive);
    sends.push_back(id);
  }
  return id;
}

}  // namespace herdsim
