// The work of one optimizer step as an immutable graph: what is done, in which order, by whom - not how long it takes.
//
// Ranks of one pipeline stage run the same program, so a graph has one Program a stage, whatever the number of ranks. A
// program is a list of ops in issue order. Ops of one stream run one after another in that order; an op also waits for
// the ops it depends on. The thousands of ops of a step are few distinct pieces of Work, stored once.
//
// A collective meets the other members of its communicator: the k-th collective of a stream and communicator is the same
// collective on every member. A send names the receive op of the peer's program that it completes.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>
#include <vector>

#include "sim/base/ids.h"
#include "sim/base/units.h"
#include "sim/collectives/collective.h"
#include "sim/collectives/collective_phases.h"
#include "sim/collectives/token_exchange.h"
#include "sim/metrics/step_result.h"
#include "sim/models/kernel.h"
#include "sim/observe/span.h"
#include "sim/opgraph/rank_grid.h"

namespace herdsim {

// Work of which the ranks of one stage have unequal shares; a kernel's shape is that of the mean rank.
enum class Uneven : uint8_t {
  kNot,
  kDocuments,  // attention, where documents end at different places in each sequence
  kExperts,    // products of experts that get more or fewer tokens than others
};
constexpr size_t kUnevenKinds = 3;

// What each rank has to do over what the mean rank has. Empty: all have the same.
struct UnevenLoad {
  std::vector<uint32_t> row;    // by rank: ranks of one row do the same
  size_t columns = 1;           // micro-batches, or 1 where all are alike
  std::vector<double> factors;  // by row, then column

  bool empty() const { return factors.empty(); }
  double at(RankId rank, int32_t micro_batch) const {
    if (empty()) return 1;
    const size_t column = columns == 1 ? 0 : static_cast<size_t>(micro_batch);
    return factors[row[rank.index()] * columns + column];
  }
  friend bool operator==(const UnevenLoad&, const UnevenLoad&) = default;
};

struct Kernel {
  std::string name;  // "qkv", "attention", "norm"
  TimeTerm term = TimeTerm::kCompute;
  std::variant<GemmShape, AttentionShape, MemoryTraffic> work;
  double repeats = 1;
  Uneven uneven = Uneven::kNot;
};

enum class WorkKind : uint8_t { kCompute, kCollective, kSend, kReceive, kHost };

using WorkId = Id<struct WorkTag>;

struct Work {
  WorkKind kind = WorkKind::kCompute;
  Stream stream = Stream::kCompute;
  std::string name;
  TimeTerm exposed_as = TimeTerm::kOther;  // of a transfer: where waiting for it is booked

  std::vector<Kernel> kernels;  // kCompute, run back to back; of one kind of uneven work at most
  // kCompute: it takes at least this long. kHost: the host's own time, such as to launch a layer; what needs the launch
  // waits for this op.
  Duration host_floor;
  Duration jitter;  // standard deviation over ranks of the time beyond that; the slowest rank decides

  Communicator communicator = Communicator::kTensor;  // kCollective
  CollectiveKind collective = CollectiveKind::kAllReduce;

  Bytes bytes;  // kCollective: as plan_collective() counts them; kSend, kReceive: the message
  TokenRouting routing;  // of an all-to-all that sends a token once to each place
  // A rank's flow to or from the store, at this rate at most: a collective of a group of one. `disk_crossings` of the plan.
  struct StoreFlow {
    StoreAccess access = StoreAccess::kWrite;
    Bandwidth most;
    int64_t disk_crossings = kDiskCrossings;
  };
  std::optional<StoreFlow> store = {};
  // Of a collective that the scenario says how to run: this work is one phase of it, and `bytes` are those of it all.
  std::optional<PlacedPhase> phase = {};
};

// Of a collective, in a group of that shape.
CollectivePlan plan_of(const Work& work, const GroupShape& group, const NcclTuning& tuning);
// What part of the group it runs in, and of how many bytes: of a phase its own.
GroupShape part_of(const Work& work, const GroupShape& group);
Bytes bytes_in(const Work& work, const GroupShape& group);

struct Op {
  WorkId work;
  int32_t micro_batch = -1;
  int32_t chunk = -1;
  StepPhase phase = StepPhase::kUnknown;
  uint32_t first_dependency = 0;
  uint32_t dependencies = 0;
  // kSend: where it goes. The peer has the same coordinates but for the pipeline stage.
  ProgramId peer;
  OpId receive;
};

struct Program {
  std::vector<Op> ops;
  std::vector<OpId> dependencies;               // of all ops, in their order; see Op::first_dependency
  std::vector<std::vector<OpId>> stream_order;  // by Stream: its ops, in issue order

  // Ops that came in together. Those of two blocks of one number, also of two programs of a graph, have the same works
  // and phases, each as many dependencies, and those on ops of the block equally far back.
  struct Block {
    uint32_t first_op = 0, ops = 0;
    uint32_t number = 0;
  };
  std::vector<Block> blocks;  // one behind the other, as far as known; other ops may lie between

  std::span<const OpId> dependencies_of(const Op& op) const {
    return {dependencies.data() + op.first_dependency, op.dependencies};
  }
};

struct OpGraph {
  RankGrid grid;
  TypedVector<WorkId, Work> works;
  TypedVector<ProgramId, Program> programs;  // by pipeline stage
  std::array<UnevenLoad, kUnevenKinds> uneven;  // by Uneven

  ProgramId program_of(RankId rank) const { return ProgramId(grid.coordinate(rank, Axis::kPp)); }
};

// Ops to put into programs again and again.
struct OpBlock {
  uint32_t number = 0;
  std::vector<Op> ops;             // Op::first_dependency counts from the first of the block
  std::vector<OpId> dependencies;  // those on ops of the block count from its first op
  // Places of the others, which are given with each block; here they are those of the block that it was taken from.
  std::vector<uint32_t> outer;
  struct OnStream {
    Stream stream = Stream::kCompute;
    std::vector<OpId> ops;  // in issue order, counted from the block's first
  };
  std::vector<OnStream> streams;  // that have any
};

// Appends ops to one program; dependencies are given with the op, on ops already appended.
class ProgramBuilder {
 public:
  explicit ProgramBuilder(const TypedVector<WorkId, Work>& works);
  // Makes room for a program of the size of `like`: programs of the stages of a pipeline are much alike.
  void reserve(const Program& like);
  OpId add(WorkId work, std::span<const OpId> dependencies, int32_t micro_batch = -1,
           int32_t chunk = -1);
  // The ops from `first` on become a block, to put in again.
  OpBlock block_from(OpId first, uint32_t number);
  // All of them are of one micro-batch and chunk. `outer`: what they wait for before the block, as many as block.outer.
  // Returns the first.
  OpId add(const OpBlock& block, std::span<const OpId> outer, int32_t micro_batch, int32_t chunk);
  OpId last() const { return OpId(program_.ops.size() - 1); }
  size_t size() const { return program_.ops.size(); }
  Op& op(OpId id) { return program_.ops[id.index()]; }
  Program build() { return std::move(program_); }

 private:
  void mark_block(const OpBlock& block, OpId first);

  const TypedVector<WorkId, Work>& works_;  // Must outlive this object.
  Program program_;
};

}  // namespace herdsim
