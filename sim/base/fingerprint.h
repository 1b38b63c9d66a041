// An order-sensitive 64-bit hash of values, the same on every machine of one toolchain. Two results with equal
// fingerprints are equal for every purpose of the tests; it is no defence against an adversary.
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include "sim/base/time.h"
#include "sim/base/units.h"

namespace herdsim {

// The finaliser of splitmix64 (Steele, Lea, Flood 2014): a bijection whose output bits all depend on all input bits.
constexpr uint64_t mix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

class Fingerprint {
 public:
  constexpr void add(uint64_t value) { state_ = mix64(state_ ^ value); }
  constexpr void add(int64_t value) { add(static_cast<uint64_t>(value)); }
  constexpr void add(int value) { add(static_cast<uint64_t>(static_cast<int64_t>(value))); }
  constexpr void add(double value) { add(std::bit_cast<uint64_t>(value == 0 ? 0.0 : value)); }
  constexpr void add(bool value) { add(uint64_t{value}); }
  constexpr void add(Duration value) { add(value.nanoseconds()); }
  constexpr void add(Instant value) { add(value.nanoseconds()); }
  constexpr void add(Bytes value) { add(value.count()); }
  constexpr void add(std::string_view text) {
    add(static_cast<uint64_t>(text.size()));
    for (const char c : text) add(uint64_t{static_cast<unsigned char>(c)});
  }
  constexpr uint64_t value() const { return state_; }
  // Sixteen hexadecimal digits.
  std::string text() const;

 private:
  uint64_t state_ = 0x68657264'73696d31ULL;
};

}  // namespace herdsim
