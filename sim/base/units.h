// Amounts of data and work, and rates of both.
//
// Bits, bytes, decimal and binary are different words at construction and gone afterwards:
//   gigabytes(80) < gibibytes(80);  gigabits_per_second(400) == gigabytes_per_second(50)
//
// `Bandwidth` is a whole number of bytes per second on purpose. Max-min sharing subtracts rates from capacities; with
// integers n flows of rate r leave exactly what one folded flow of multiplicity n leaves, so folding cannot round.
// `Flops` and `FlopRate` are doubles: one step of a large cluster is beyond 2^63 operations.
#pragma once

#include <algorithm>
#include <cmath>
#include <compare>
#include <cstdint>

#include "sim/base/time.h"

namespace herdsim {

__extension__ using Int128 = __int128;  // products of an amount and a time

class Bytes {
 public:
  constexpr Bytes() = default;
  explicit constexpr Bytes(int64_t count) : count_(count) {}
  constexpr int64_t count() const { return count_; }
  friend constexpr auto operator<=>(Bytes, Bytes) = default;
  friend constexpr Bytes operator+(Bytes a, Bytes b) { return Bytes(a.count_ + b.count_); }
  friend constexpr Bytes operator-(Bytes a, Bytes b) { return Bytes(a.count_ - b.count_); }
  friend constexpr Bytes operator*(Bytes a, int64_t n) { return Bytes(a.count_ * n); }
  friend constexpr Bytes operator*(int64_t n, Bytes a) { return a * n; }
  // Rounds up: the last piece of a division is never lost.
  friend constexpr Bytes operator/(Bytes a, int64_t n) { return Bytes((a.count_ + n - 1) / n); }
  constexpr Bytes& operator+=(Bytes b) { return *this = *this + b; }
  constexpr Bytes& operator-=(Bytes b) { return *this = *this - b; }

 private:
  int64_t count_ = 0;
};

constexpr Bytes bytes(int64_t n) { return Bytes(n); }
constexpr Bytes kibibytes(int64_t n) { return Bytes(n << 10); }
constexpr Bytes mebibytes(int64_t n) { return Bytes(n << 20); }
constexpr Bytes gibibytes(int64_t n) { return Bytes(n << 30); }
constexpr Bytes megabytes(int64_t n) { return Bytes(n * 1'000'000); }
constexpr Bytes gigabytes(int64_t n) { return Bytes(n * 1'000'000'000); }

class Bandwidth {
 public:
  constexpr Bandwidth() = default;
  static constexpr Bandwidth from_bytes_per_second(int64_t rate) { return Bandwidth(rate); }
  // Faster than any link.
  static constexpr Bandwidth unlimited() { return Bandwidth(int64_t{1} << 60); }
  constexpr int64_t bytes_per_second() const { return rate_; }
  constexpr double gigabytes_per_second() const { return static_cast<double>(rate_) * 1e-9; }
  friend constexpr auto operator<=>(Bandwidth, Bandwidth) = default;
  friend constexpr Bandwidth operator+(Bandwidth a, Bandwidth b) {
    return Bandwidth(a.rate_ + b.rate_);
  }
  friend constexpr Bandwidth operator-(Bandwidth a, Bandwidth b) {
    return Bandwidth(a.rate_ - b.rate_);
  }
  friend constexpr Bandwidth operator*(Bandwidth a, int64_t n) { return Bandwidth(a.rate_ * n); }
  // Rounds down: shares never add up to more than the whole.
  friend constexpr Bandwidth operator/(Bandwidth a, int64_t n) { return Bandwidth(a.rate_ / n); }

 private:
  explicit constexpr Bandwidth(int64_t rate) : rate_(rate) {}
  int64_t rate_ = 0;
};

constexpr Bandwidth gigabits_per_second(int64_t n) {
  return Bandwidth::from_bytes_per_second(n * 125'000'000);
}
constexpr Bandwidth gigabytes_per_second(int64_t n) {
  return Bandwidth::from_bytes_per_second(n * 1'000'000'000);
}
// Rounds to the nearest byte per second.
inline Bandwidth bytes_per_second(double rate) {
  return Bandwidth::from_bytes_per_second(std::llround(rate));
}

// A number in [0, 1]: efficiencies and shares. Anything else is clamped; a factor that may exceed one is a named double.
class Ratio {
 public:
  constexpr Ratio() = default;
  explicit constexpr Ratio(double value) : value_(std::clamp(value, 0.0, 1.0)) {}
  constexpr double value() const { return value_; }
  friend constexpr auto operator<=>(Ratio, Ratio) = default;

 private:
  double value_ = 0;
};

inline Bandwidth operator*(Bandwidth a, Ratio r) {
  return bytes_per_second(static_cast<double>(a.bytes_per_second()) * r.value());
}

class Flops {
 public:
  constexpr Flops() = default;
  explicit constexpr Flops(double count) : count_(count) {}
  constexpr double count() const { return count_; }
  friend constexpr auto operator<=>(Flops, Flops) = default;
  friend constexpr Flops operator+(Flops a, Flops b) { return Flops(a.count_ + b.count_); }
  friend constexpr Flops operator*(Flops a, double n) { return Flops(a.count_ * n); }
  friend constexpr Flops operator*(double n, Flops a) { return a * n; }
  constexpr Flops& operator+=(Flops b) { return *this = *this + b; }

 private:
  double count_ = 0;
};

class FlopRate {
 public:
  constexpr FlopRate() = default;
  static constexpr FlopRate from_per_second(double rate) { return FlopRate(rate); }
  constexpr double per_second() const { return rate_; }
  constexpr double teraflops() const { return rate_ * 1e-12; }
  friend constexpr auto operator<=>(FlopRate, FlopRate) = default;
  friend constexpr FlopRate operator*(FlopRate a, double factor) { return FlopRate(a.rate_ * factor); }

 private:
  explicit constexpr FlopRate(double rate) : rate_(rate) {}
  double rate_ = 0;
};

constexpr FlopRate teraflops(double n) { return FlopRate::from_per_second(n * 1e12); }

// Exact for whole numbers of nanoseconds: gigabytes(1) / gigabits_per_second(400) is 20 ms. Rounds up;
// a rate of zero never finishes.
constexpr Duration operator/(Bytes amount, Bandwidth rate) {
  if (rate.bytes_per_second() <= 0) return amount.count() > 0 ? Duration::infinite() : Duration::zero();
  const Int128 scaled = static_cast<Int128>(amount.count()) * 1'000'000'000;
  const Int128 ticks = (scaled + rate.bytes_per_second() - 1) / rate.bytes_per_second();
  return ticks > INT64_MAX ? Duration::infinite()
                           : Duration::from_nanoseconds(static_cast<int64_t>(ticks));
}

inline Duration operator/(Flops work, FlopRate rate) {
  return seconds_rounded_up(work.count() / rate.per_second());
}

}  // namespace herdsim
