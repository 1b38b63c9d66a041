// Passes that a step has lowered before. One that has the same units, and hangs on what comes
// before it in the same way, is the same ops again: they are put in as a block, whatever the
// micro-batch, chunk and stage.
//
// What a pass waits for before itself is one of few ops, its *anchors*.
//
//   if (const KnownPass* known = passes.find({.units = ..., .anchors = pattern_of(anchors)}))
//     builder.add(known->block, outer, micro_batch, chunk);   // outer: the anchors that
//     known->outer names
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "sim/opgraph/op_graph.h"
#include "workloads/schedules/schedule.h"

namespace herdsim {

enum class Anchor : uint8_t {
  kSource,         // what it starts from, where its own stage made that
  kBlockingSend,   // the last message, where the next kernel waits for that
  kLaunch,         // what launches the unit that comes next
  kUnitEnd,        // the last op of the last unit
  kUnitEndBefore,  // and of the one before it
};
constexpr size_t kAnchors = 5;
using Anchors = std::array<std::optional<OpId>, kAnchors>;

// Where what a pass starts from comes from, or what it makes goes.
enum class PassEdge : uint8_t { kNone, kOwnStage, kMessage };

// All that the ops of a pass follow from, within one step.
struct PassLikeness {
  size_t units = 0;  // the first model chunk of the same ones
  PassKind kind = PassKind::kForward;
  PassEdge input = PassEdge::kNone, output = PassEdge::kNone;
  WorkId source;  // of Anchor::kSource
  // By anchor: the first that is the same op, or kAnchors.
  std::array<uint8_t, kAnchors> anchors{};

  friend bool operator==(const PassLikeness&, const PassLikeness&) = default;
};
std::array<uint8_t, kAnchors> pattern_of(const Anchors& anchors);

// An op of a pass, counted from its first, or an anchor.
struct PassOp {
  static PassOp of(OpId op, OpId first, const Anchors& anchors);
  OpId in(OpId first, const Anchors& anchors) const {
    return anchor ? *anchors[static_cast<size_t>(*anchor)] : OpId(first.index() + op);
  }

  std::optional<Anchor> anchor;
  size_t op = 0;
};

// What of a pass is known elsewhere.
template <class Place>
struct PassEnds {
  std::optional<Place> received;   // the message it starts from
  std::optional<Place> handed_on;  // to the next pass of the micro-batch, on the same stage
  std::optional<Place> sent;       // to another stage
};

struct KnownPass {
  PassLikeness like;
  OpBlock block = {};
  std::vector<Anchor> outer = {};  // of the block's outer dependencies
  PassEnds<PassOp> ends = {};
  std::array<std::optional<PassOp>, kAnchors> anchors_after = {};
  std::vector<WorkId> deferred = {};  // reductions for the end of the step
};

class KnownPasses {
 public:
  // Null where none is like it.
  const KnownPass* find(const PassLikeness& like) const;
  void add(KnownPass pass) { passes_.push_back(std::move(pass)); }
  uint32_t size() const { return static_cast<uint32_t>(passes_.size()); }

 private:
  std::vector<KnownPass> passes_;
};

}  // namespace herdsim
