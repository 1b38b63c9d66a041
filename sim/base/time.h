// Simulated time: two types over signed 64-bit nanoseconds.
//
// `Instant` says when, `Duration` how long. They mix only as Instant + Duration -> Instant and
// Instant - Instant -> Duration, so a date cannot be used as a length. 2^63 ns is 292 years: a step of
// seconds and a campaign of months share one clock, and one tick is one Perfetto timestamp unit.
//
// Arithmetic saturates at infinite() and never wraps: a rate of zero makes an event that never comes, not
// one in the past. Real numbers become ticks in one way only, rounded up, so that nothing ends early.
//
//   Instant end = engine.now() + microseconds(12);
#pragma once

#include <cmath>
#include <compare>
#include <cstdint>
#include <limits>

namespace herdsim {

class Duration {
 public:
  constexpr Duration() = default;
  static constexpr Duration from_nanoseconds(int64_t ticks) { return Duration(ticks); }
  static constexpr Duration zero() { return Duration(0); }
  // Longer than any simulation; sums with it stay infinite.
  static constexpr Duration infinite() { return Duration(std::numeric_limits<int64_t>::max()); }

  constexpr int64_t nanoseconds() const { return ticks_; }
  constexpr double seconds() const { return static_cast<double>(ticks_) * 1e-9; }
  constexpr bool is_finite() const { return ticks_ != std::numeric_limits<int64_t>::max(); }

  friend constexpr auto operator<=>(Duration, Duration) = default;
  friend constexpr Duration operator+(Duration a, Duration b) {
    return Duration(saturating_sum(a.ticks_, b.ticks_));
  }
  // infinite() minus anything finite stays infinite.
  friend constexpr Duration operator-(Duration a, Duration b) {
    return a.is_finite() ? Duration(saturating_sum(a.ticks_, -b.ticks_)) : a;
  }
  friend constexpr Duration operator*(Duration a, int64_t n) {
    int64_t product = 0;
    if (!a.is_finite() || __builtin_mul_overflow(a.ticks_, n, &product)) return infinite();
    return Duration(product);
  }
  friend constexpr Duration operator*(int64_t n, Duration a) { return a * n; }
  constexpr Duration& operator+=(Duration other) { return *this = *this + other; }
  constexpr Duration& operator-=(Duration other) { return *this = *this - other; }

 private:
  friend class Instant;
  explicit constexpr Duration(int64_t ticks) : ticks_(ticks) {}
  static constexpr int64_t saturating_sum(int64_t a, int64_t b) {
    int64_t sum = 0;
    if (__builtin_add_overflow(a, b, &sum)) {
      return a > 0 ? std::numeric_limits<int64_t>::max() : std::numeric_limits<int64_t>::min();
    }
    return sum;
  }
  int64_t ticks_ = 0;
};

class Instant {
 public:
  constexpr Instant() = default;
  static constexpr Instant from_nanoseconds(int64_t ticks) {
    return Instant(Duration::from_nanoseconds(ticks));
  }
  static constexpr Instant start() { return Instant(); }
  // Later than every event.
  static constexpr Instant never() { return Instant(Duration::infinite()); }

  constexpr int64_t nanoseconds() const { return since_start_.nanoseconds(); }
  constexpr double seconds() const { return since_start_.seconds(); }
  constexpr Duration since_start() const { return since_start_; }

  friend constexpr auto operator<=>(Instant, Instant) = default;
  friend constexpr Instant operator+(Instant a, Duration d) { return Instant(a.since_start_ + d); }
  friend constexpr Duration operator-(Instant a, Instant b) {
    return a.since_start_ - b.since_start_;
  }

 private:
  explicit constexpr Instant(Duration since_start) : since_start_(since_start) {}
  Duration since_start_;
};

constexpr Duration nanoseconds(int64_t n) { return Duration::from_nanoseconds(n); }
constexpr Duration microseconds(int64_t n) { return nanoseconds(1000) * n; }
constexpr Duration milliseconds(int64_t n) { return nanoseconds(1'000'000) * n; }
constexpr Duration seconds(int64_t n) { return nanoseconds(1'000'000'000) * n; }
constexpr Duration hours(int64_t n) { return seconds(3600) * n; }
constexpr Duration days(int64_t n) { return hours(24) * n; }

// The one door from real numbers to ticks. Rounds up, saturates above 292 years; negative and NaN give zero and
// infinite: a model that returns either has already been rejected by its caller's checks.
inline Duration seconds_rounded_up(double s) {
  if (std::isnan(s)) return Duration::infinite();
  if (s <= 0) return Duration::zero();
  const double ticks = std::ceil(s * 1e9);
  return ticks >= 9.2e18 ? Duration::infinite()
                         : Duration::from_nanoseconds(static_cast<int64_t>(ticks));
}

}  // namespace herdsim
