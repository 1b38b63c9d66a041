// An exact fraction `amount / parts` of bandwidth: what is left of a link over the crossings that
// still grow.
//
// Comparing shares by cross multiplication is what makes sharing exact: two links saturate together
// if and only if their fractions are equal as numbers, however they are written (20/4 and 5/1).
#pragma once

#include <compare>
#include <cstdint>

#include "sim/base/units.h"

namespace herdsim {

struct Share {
  int64_t amount = 0;  // bytes per second, at least 0
  int64_t parts = 1;   // at least 1

  // Rounds down: shares never add up to more than the whole.
  constexpr int64_t floor() const { return parts == 1 ? amount : amount / parts; }

  friend constexpr bool operator==(Share a, Share b) {
    return Int128{a.amount} * b.parts == Int128{b.amount} * a.parts;
  }
  friend constexpr std::strong_ordering operator<=>(Share a, Share b) {
    return Int128{a.amount} * b.parts <=> Int128{b.amount} * a.parts;
  }
};

}  // namespace herdsim
