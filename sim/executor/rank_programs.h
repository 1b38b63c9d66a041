// How far each rank class is in its program: what is done, what each stream does next, and what
// that waits for.
//
// Ops are held in the form that every look at one needs, a quarter of their size; a program is read
// once, in several places at a time, and is larger than a cache, so ops are asked for before they
// are needed.
//
//   for (uint32_t idle = programs.idle(rank); idle != 0; idle &= idle - 1) {
//     const auto stream = static_cast<size_t>(std::countr_zero(idle));
//     if (programs.first_missing(rank, stream) != nullptr) continue;   // waits
//     programs.set_running(rank, stream);                              // ... and when it has
//     ended: programs.pass(rank, stream);
//   }
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "sim/opgraph/op_graph.h"
#include "sim/symmetry/folded_job.h"

namespace herdsim {

// Of a work, what every start and end of an op asks.
struct WorkFacts {
  WorkKind kind;
  Stream stream;
  TimeTerm exposed_as;
  bool is_world;
};

class RankPrograms {
 public:
  // Both must outlive this object.
  RankPrograms(const OpGraph& graph, const FoldedJob& job)
      : graph_(graph), job_(job), cursors_(job.ranks.size()) {
    for (const Work& work : graph.works) {
      facts_.push_back(
          {work.kind, work.stream, work.exposed_as, work.communicator == Communicator::kWorld});
    }
    for (const Program& program : graph.programs) {
      std::vector<CompactOp> ops;
      ops.reserve(program.ops.size() + 1);
      for (const Op& op : program.ops) {
        ops.push_back({op.first_dependency, static_cast<uint32_t>(op.work.index())});
      }
      ops.push_back({static_cast<uint32_t>(program.dependencies.size()), 0});
      ops_.push_back(std::move(ops));
    }
    reset();
  }

  // All at the head of their programs, nothing done.
  void reset() {
    size_t words = 0;
    for (size_t r = 0; r < cursors_.size(); ++r) {
      Cursor& at = cursors_[RankClassId(r)] = {};
      const ProgramId program = job_.ranks[RankClassId(r)].program;
      at.program = &graph_.programs[program];
      at.ops = ops_[program].data();
      at.first_word = words;
      words += at.program->ops.size() / 64 + 1;
      for (size_t stream = 0; stream < kStreams; ++stream) {
        const std::vector<OpId>& order = at.program->stream_order[stream];
        at.next[stream] = order.data();
        at.last[stream] = order.data() + order.size();
        if (stream != kReceives && !order.empty()) at.open |= bit_of(stream);
      }
    }
    done_.assign(words, 0);
  }

  const Op& op(RankClassId rank, OpId op) const { return cursors_[rank].program->ops[op.index()]; }
  WorkId work(RankClassId rank, OpId op) const {
    return WorkId(cursors_[rank].ops[op.index()].work);
  }
  const WorkFacts& facts(RankClassId rank, OpId op) const { return facts_[work(rank, op)]; }
  const WorkFacts& facts(WorkId work) const { return facts_[work]; }

  // Of streams that ops start on in order. Receives are not among them: the sender orders those.
  bool is_open(RankClassId rank, size_t stream) const {
    return (cursors_[rank].open & bit_of(stream)) != 0;
  }
  bool is_running(RankClassId rank, size_t stream) const {
    return (cursors_[rank].running & bit_of(stream)) != 0;
  }
  // Bits of the open streams on which nothing runs.
  uint32_t idle(RankClassId rank) const {
    return cursors_[rank].open & ~uint32_t{cursors_[rank].running};
  }
  // The op that runs on an open stream, or runs next.
  OpId next(RankClassId rank, size_t stream) const { return *cursors_[rank].next[stream]; }

  // The first op that the next one of an open stream waits for; null: none.
  const OpId* first_missing(RankClassId rank, size_t stream) {
    Cursor& at = cursors_[rank];
    const bool was_blocked = (at.blocked & bit_of(stream)) != 0;
    if (was_blocked && !is_done(at, *at.missing[stream])) return at.missing[stream];
    const CompactOp* const op = at.ops + at.next[stream]->index();
    const OpId* const all = at.program->dependencies.data();
    const OpId* const end = all + op[1].first_dependency;
    const OpId* dependency = was_blocked ? at.missing[stream] + 1 : all + op->first_dependency;
    while (dependency != end && is_done(at, *dependency)) ++dependency;
    if (dependency == end) {
      at.blocked &= static_cast<uint16_t>(~bit_of(stream));
      return nullptr;
    }
    at.blocked |= bit_of(stream);
    at.missing[stream] = dependency;
    return dependency;
  }

  void set_running(RankClassId rank, size_t stream) { cursors_[rank].running |= bit_of(stream); }
  void set_done(RankClassId rank, OpId op) {
    done_[cursors_[rank].first_word + op.index() / 64] |= uint64_t{1} << (op.index() % 64);
  }
  // The op that ran on the stream has ended; the stream stands at the one after it.
  void pass(RankClassId rank, size_t stream) {
    Cursor& at = cursors_[rank];
    at.running &= static_cast<uint16_t>(~bit_of(stream));
    if (++at.next[stream] == at.last[stream]) {
      at.open &= static_cast<uint16_t>(~bit_of(stream));
    } else {
      fetch_ahead(at, stream);
    }
  }

  // As if so many ops of the first streams had run, nothing of which runs now.
  template <size_t kCount>
  void skip(RankClassId rank, const std::array<uint32_t, kCount>& ops_on) {
    Cursor& at = cursors_[rank];
    for (size_t stream = 0; stream < kCount; ++stream) {
      if (ops_on[stream] == 0) continue;
      at.blocked &= static_cast<uint16_t>(~bit_of(stream));
      at.next[stream] += ops_on[stream];
      if (at.next[stream] == at.last[stream]) at.open &= static_cast<uint16_t>(~bit_of(stream));
    }
  }
  bool is_done(RankClassId rank, OpId op) const { return is_done(cursors_[rank], op); }

 private:
  static constexpr size_t kReceives = static_cast<size_t>(Stream::kReceive);
  static_assert(kStreams <= 16);
  static constexpr uint16_t bit_of(size_t stream) { return static_cast<uint16_t>(1U << stream); }

  // Eight to a cache line. Its dependencies end where those of the next op begin.
  struct CompactOp {
    uint32_t first_dependency = 0;
    uint32_t work = 0;
  };

  struct Cursor {
    const Program* program = nullptr;
    const CompactOp* ops = nullptr;
    size_t first_word = 0;  // of the rank's bits in `done_`
    // By stream: the next op, or the one that runs, and the end of its ops.
    std::array<const OpId*, kStreams> next{}, last{};
    // By stream whose bit is in `blocked`: the first dependency that its next op was seen to wait
    // for. Most looks at a stream find it still missing, which takes one bit; those before it are
    // not looked at again.
    std::array<const OpId*, kStreams> missing{};
    uint16_t blocked = 0;
    uint16_t open = 0;     // streams with an op left, but for receives
    uint16_t running = 0;  // streams whose next op runs
  };

  bool is_done(const Cursor& at, OpId op) const {
    return (done_[at.first_word + op.index() / 64] >> (op.index() % 64) & 1) != 0;
  }

  static void fetch_ahead(const Cursor& at, size_t stream) {
    constexpr ptrdiff_t kOps = 4, kDependencies = 2;
    const OpId* const next = at.next[stream];
    if (at.last[stream] - next <= kOps) return;
    __builtin_prefetch(&at.ops[next[kOps].index()]);
    __builtin_prefetch(at.program->dependencies.data() +
                       at.ops[next[kDependencies].index()].first_dependency);
  }

  const OpGraph& graph_;
  const FoldedJob& job_;
  TypedVector<WorkId, WorkFacts> facts_;
  TypedVector<ProgramId, std::vector<CompactOp>> ops_;
  TypedVector<RankClassId, Cursor> cursors_;
  std::vector<uint64_t> done_;  // bits, by rank class and op
};

}  // namespace herdsim
