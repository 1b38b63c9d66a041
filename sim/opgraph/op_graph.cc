#include "sim/opgraph/op_graph.h"

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
