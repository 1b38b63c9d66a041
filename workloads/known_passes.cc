#include "workloads/known_passes.h"

#include <algorithm>

#include "sim/base/check.h"

namespace herdsim {

std::array<uint8_t, kAnchors> pattern_of(const Anchors& anchors) {
  std::array<uint8_t, kAnchors> pattern;
  for (size_t a = 0; a < kAnchors; ++a) {
    const auto first =
        std::find(anchors.begin(), anchors.begin() + static_cast<ptrdiff_t>(a), anchors[a]);
    pattern[a] = static_cast<uint8_t>(anchors[a] ? first - anchors.begin() : kAnchors);
  }
  return pattern;
}

PassOp PassOp::of(OpId op, OpId first, const Anchors& anchors) {
  if (op >= first) return {.anchor = {}, .op = op.index() - first.index()};
  const auto anchor = std::find(anchors.begin(), anchors.end(), op);
  HERDSIM_CHECK(anchor != anchors.end()) << "a pass waits for an op that is none of its anchors";
  return {.anchor = static_cast<Anchor>(anchor - anchors.begin()), .op = 0};
}

const KnownPass* KnownPasses::find(const PassLikeness& like) const {
  const auto known = std::find_if(passes_.begin(), passes_.end(),
                                  [&](const KnownPass& pass) { return pass.like == like; });
  return known == passes_.end() ? nullptr : &*known;
}

}  // namespace herdsim
