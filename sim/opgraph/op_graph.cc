#include "sim/opgraph/op_graph.h"

#include <algorithm>
#include <utility>

#include "sim/base/check.h"

namespace herdsim {

CollectivePlan plan_of(const Work& work, const GroupShape& group, const NcclTuning& tuning) {
  if (work.store) {
    const bool write = work.store->access == StoreAccess::kWrite;
    return {.algorithm = write ? Algorithm::kToStore : Algorithm::kFromStore,
            .volume = work.bytes,
            .rate_cap = work.store->most,
            .nic_crossings = 1,
            .disk_crossings = work.store->disk_crossings};
  }
  const Bytes moved = once_a_place(work.bytes, work.routing, group);
  return work.phase ? plan_phase(moved, group, *work.phase, tuning)
                    : plan_collective(work.collective, moved, group, tuning);
}

GroupShape part_of(const Work& work, const GroupShape& group) {
  return work.phase ? part_of(group, work.phase->phase.part) : group;
}

Bytes bytes_in(const Work& work, const GroupShape& group) {
  return work.phase ? bytes_of_phase(work.bytes, group, *work.phase) : work.bytes;
}

ProgramBuilder::ProgramBuilder(const TypedVector<WorkId, Work>& works) : works_(works) {
  program_.stream_order.resize(kStreams);
}

void ProgramBuilder::reserve(const Program& like) {
  // Room that stays empty is never touched and costs nothing.
  const auto with_margin = [](size_t size) { return size + size / 8; };
  program_.ops.reserve(with_margin(like.ops.size()));
  program_.dependencies.reserve(with_margin(like.dependencies.size()));
  for (size_t s = 0; s < kStreams; ++s) {
    program_.stream_order[s].reserve(with_margin(like.stream_order[s].size()));
  }
  program_.blocks.reserve(with_margin(like.blocks.size()));
}

OpBlock ProgramBuilder::block_from(OpId first, uint32_t number) {
  OpBlock block{.number = number, .ops = {}, .dependencies = {}, .outer = {}, .streams = {}};
  block.ops.assign(program_.ops.begin() + static_cast<ptrdiff_t>(first.index()),
                   program_.ops.end());
  const size_t first_dependency =
      block.ops.empty() ? program_.dependencies.size() : block.ops.front().first_dependency;
  for (Op& op : block.ops) op.first_dependency -= static_cast<uint32_t>(first_dependency);
  for (size_t d = first_dependency; d < program_.dependencies.size(); ++d) {
    const OpId before = program_.dependencies[d];
    if (before < first) block.outer.push_back(static_cast<uint32_t>(d - first_dependency));
    block.dependencies.push_back(before < first ? before : OpId(before.index() - first.index()));
  }
  for (size_t s = 0; s < kStreams; ++s) {
    const std::vector<OpId>& order = program_.stream_order[s];
    OpBlock::OnStream on{.stream = static_cast<Stream>(s), .ops = {}};
    for (auto op = std::lower_bound(order.begin(), order.end(), first); op != order.end(); ++op)
      on.ops.emplace_back(op->index() - first.index());
    if (!on.ops.empty()) block.streams.push_back(std::move(on));
  }
  mark_block(block, first);
  return block;
}

OpId ProgramBuilder::add(const OpBlock& block, std::span<const OpId> outer, int32_t micro_batch,
                         int32_t chunk) {
  HERDSIM_DCHECK(outer.size() == block.outer.size()) << outer.size();
  const size_t first = program_.ops.size();
  const size_t first_dependency = program_.dependencies.size();
  program_.ops.insert(program_.ops.end(), block.ops.begin(), block.ops.end());
  for (size_t o = first; o < program_.ops.size(); ++o) {
    Op& op = program_.ops[o];
    op.micro_batch = micro_batch;
    op.chunk = chunk;
    op.first_dependency += static_cast<uint32_t>(first_dependency);
  }
  const auto append_shifted = [first](const std::vector<OpId>& from, std::vector<OpId>& to) {
    const size_t begin = to.size();
    to.insert(to.end(), from.begin(), from.end());
    for (size_t i = begin; i < to.size(); ++i) to[i] = OpId(to[i].index() + first);
  };
  append_shifted(block.dependencies, program_.dependencies);
  for (size_t i = 0; i < outer.size(); ++i)
    program_.dependencies[first_dependency + block.outer[i]] = outer[i];
  for (const OpBlock::OnStream& on : block.streams)
    append_shifted(on.ops, program_.stream_order[static_cast<size_t>(on.stream)]);
  mark_block(block, OpId(first));
  return OpId(first);
}

void ProgramBuilder::mark_block(const OpBlock& block, OpId first) {
  if (block.ops.empty()) return;
  program_.blocks.push_back({static_cast<uint32_t>(first.index()),
                             static_cast<uint32_t>(block.ops.size()), block.number});
}

OpId ProgramBuilder::add(WorkId work, std::span<const OpId> dependencies, int32_t micro_batch,
                         int32_t chunk) {
  const OpId id(program_.ops.size());
  Op op;
  op.work = work;
  op.micro_batch = micro_batch;
  op.chunk = chunk;
  op.first_dependency = static_cast<uint32_t>(program_.dependencies.size());
  op.dependencies = static_cast<uint32_t>(dependencies.size());
  for (const OpId dependency : dependencies) {
    HERDSIM_CHECK(dependency < id) << "an op may only wait for earlier ones";
    program_.dependencies.push_back(dependency);
  }
  program_.ops.push_back(op);
  program_.stream_order[static_cast<size_t>(works_[work].stream)].push_back(id);
  return id;
}

}  // namespace herdsim
