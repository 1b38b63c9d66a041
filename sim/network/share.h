// An exact fraction `amount / parts` of bandwidth: what is left of a link over the crossings that
// still grow.
//
// Comparing shares exactly is what makes sharing exact: two links saturate together if and only if
// their fractions are equal as numbers, however they are written (20/4 and 5/1). A double beside
// the fraction answers nearly every comparison; cross multiplication in 128 bits answers the close
// ones.
#pragma once

#include <cstdint>

#include "sim/base/units.h"

namespace herdsim {

class Share {
 public:
  constexpr Share() = default;  // nothing
  // Requires: amount >= 0; parts >= 1.
  constexpr Share(int64_t amount, int64_t parts)
      : amount_(amount),
        parts_(parts),
        near_(parts == 1 ? static_cast<double>(amount)
                         : static_cast<double>(amount) / static_cast<double>(parts)) {}

  constexpr int64_t amount() const { return amount_; }
  constexpr int64_t parts() const { return parts_; }
  // Rounds down: shares never add up to more than the whole.
  constexpr int64_t floor() const { return parts_ == 1 ? amount_ : amount_ / parts_; }

  friend constexpr bool operator<(const Share& a, const Share& b) {
    const double difference = a.near_ - b.near_;
    return is_clear(difference, a.near_) ? difference < 0 : a.times(b) < b.times(a);
  }
  friend constexpr bool operator>(const Share& a, const Share& b) { return b < a; }
  friend constexpr bool operator==(const Share& a, const Share& b) {
    return !is_clear(a.near_ - b.near_, a.near_) && a.times(b) == b.times(a);
  }

 private:
  // Two conversions and a division err by less than 2^-51 in all.
  static constexpr bool is_clear(double difference, double size) {
    constexpr double kMargin = 0x1p-48;
    return difference > size * kMargin || -difference > size * kMargin;
  }
  constexpr Int128 times(const Share& other) const { return Int128{amount_} * other.parts_; }

  int64_t amount_ = 0;
  int64_t parts_ = 1;
  double near_ = 0;
};

}  // namespace herdsim
