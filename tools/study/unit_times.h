// The least one pass of a unit of a model (embedding, layer, head) takes.
//
// Two lower bounds of the same lengths, the longer of which counts:
//
//   path     the longest path through the template, each step alone
//   demand   kernels run one at a time, so a window is as long as all kernels in it and what
//            transfers add: x - p for one that takes x, of which kernels that lie neither before
//            nor behind it can hide p; or f x for one that holds a share f of the SMs, which
//            kernels beside it lack, and if none were beside it would have been idle for longer.
//
// Transfers of one stream follow each other, so what they add is summed. On different streams and
// in no order one may hide in the other, and each adds f x only.
//
// A unit is several lengths, because a transfer at its edge need not hold up the stage: `lead` from
// its input to its first kernel, `whole` from its input to its output, `rest` from its first kernel
// to its output, `occupied` from its first kernel to its last kernel's end.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "workloads/work_template.h"

namespace herdsim {

enum class Unit : uint8_t { kEmbedding, kLayer, kRecomputedLayer, kHead };
constexpr size_t kUnits = 4;

// What transfers add to kernels.
struct AddedTime {
  int64_t adds = 0;
  int64_t idle =
      0;  // where that is x - p, the sum of x: in it transfers of other streams add nothing
  uint32_t streams = 0;  // bits, by Stream: whose transfers are in `adds`
};

// A step alone, or several one after another; of a transfer also what it takes from kernels beside
// it. Nanoseconds.
struct LeastTransfer {
  int64_t time = 0, taken = 0;

  friend LeastTransfer operator+(const LeastTransfer& a, const LeastTransfer& b) {
    return {a.time + b.time, a.taken + b.taken};
  }
};

// At a unit's edge, where kernels of another may lie beside it.
struct EdgeTransfers {
  LeastTransfer least;
  uint32_t streams = 0;
  bool has_one_stream() const { return (streams & (streams - 1)) == 0; }
};

// Nanoseconds. A weight pass of the embedding does not exist.
struct UnitTimes {
  bool exists = false;
  int64_t lead = 0, whole = 0, rest = 0, occupied = 0;
  int64_t tail = 0;               // from the input to the last kernel's end
  int64_t kernels = 0;            // one after another
  int64_t kernels_to_output = 0;  // those that have ended at the output
  int64_t after_kernels = 0;      // from the last of these to the output
  bool leads_to_output = false;   // the output waits for the first kernel
  // Of transfers that wait for the first kernel: before the last kernel; before the last kernel
  // that the output waits for; behind the last kernel and before the output, within a pass.
  AddedTime to_last_kernel, to_output_kernel, behind;
  EdgeTransfers behind_alone;  // of the latter, at the end of a pass
  // Of those that do not, and that the output waits for.
  EdgeTransfers ahead;
  uint32_t late_streams = 0;  // of transfers that the output does not wait for
};

// By work: the least it takes.
using LeastCosts = std::vector<LeastTransfer>;

// Requires: a template that is not empty has a kernel, and its last step is its output.
UnitTimes unit_times(const WorkTemplate& steps, const LeastCosts& costs,
                     const TypedVector<WorkId, Work>& works);

// No more than either in any length.
UnitTimes least(const UnitTimes& a, const UnitTimes& b);

// A pass of several units one after another, such as a chunk of a model, of which each goes on
// where the one before ended.
class ChunkTimes {
 public:
  void add(const UnitTimes& unit);

  bool exists() const { return exists_; }
  int64_t lead() const { return lead_; }
  int64_t whole() const { return whole_; }
  int64_t rest() const { return rest_; }
  int64_t occupied() const { return occupied_; }
  int64_t last() const { return last_.whole; }  // `whole` of the last unit
  // Kernels and what transfers add: of the pass among others of its stage, of it what may lie
  // before its first kernel and behind its last, and up to the last kernel that its output waits
  // for, with the path from there. Zero to the output where that waits for none.
  int64_t demand() const { return demand_ + ahead() + behind(); }
  int64_t ahead() const { return edge(ahead_); }
  int64_t behind() const { return edge(last_.behind_alone); }
  int64_t demand_to_output() const { return to_output_ > 0 ? to_output_ + ahead() : 0; }
  int64_t after_kernels() const { return last_.after_kernels; }
  int64_t idle() const { return idle_; }  // see AddedTime

 private:
  // Of a transfer beside another pass, whose transfers are of the same streams.
  int64_t edge(const EdgeTransfers& at) const {
    return (streams_ & ~at.streams) == 0 && at.has_one_stream() ? at.least.taken : 0;
  }

  bool exists_ = false;
  bool flows_ = true;  // each unit so far waits for the first kernel of all
  int64_t lead_ = 0, whole_ = 0, rest_ = 0, occupied_ = 0;
  int64_t demand_ = 0, to_output_ = 0,
          idle_ = 0;  // from the first kernel's start to the last's end
  uint32_t streams_ = 0;
  EdgeTransfers ahead_;
  UnitTimes last_;
};

}  // namespace herdsim
