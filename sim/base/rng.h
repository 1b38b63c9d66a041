// Random numbers by name, not by order: a stream is opened by (seed, purpose, entity) and is the
// same whatever else is drawn, so adding a consumer shifts nobody's draws.
//
//   RngStream draws(seed, "failures/gpu_ecc", gpu.index());
//   const double hours = -mean_hours * std::log(draws.uniform());
//   boost::random::weibull_distribution<> wear(0.7);  wear(draws);
//
// The generator is Philox4x32-10 (Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as
// 1, 2, 3, SC11), a function from (key, counter) to 128 bits. The key is a hash of seed and
// purpose; the counter is (block, entity), so two entities of one purpose never meet. A stream has
// 2^65 draws. Distributions are those of Boost.Random: the standard library's differ between
// vendors.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <string_view>

#include "sim/base/fingerprint.h"

namespace herdsim {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

// Ten rounds of Philox4x32.
constexpr PhiloxCounter philox(PhiloxCounter counter, PhiloxKey key) {
  constexpr uint64_t kMultiplier0 = 0xD2511F53, kMultiplier1 = 0xCD9E8D57;
  constexpr uint32_t kWeyl0 = 0x9E3779B9, kWeyl1 = 0xBB67AE85;
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = kMultiplier0 * counter[0];
    const uint64_t product1 = kMultiplier1 * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0],
               static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1],
               static_cast<uint32_t>(product0)};
    key[0] += kWeyl0;
    key[1] += kWeyl1;
  }
  return counter;
}

// A UniformRandomBitGenerator of 64-bit numbers.
class RngStream {
 public:
  using result_type = uint64_t;
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return std::numeric_limits<uint64_t>::max(); }

  constexpr RngStream(uint64_t seed, std::string_view purpose, uint64_t entity) : entity_(entity) {
    Fingerprint hash;
    hash.add(seed);
    hash.add(purpose);
    key_ = {static_cast<uint32_t>(hash.value()), static_cast<uint32_t>(hash.value() >> 32)};
  }

  constexpr result_type operator()() {
    if (half_ == 0) {
      const PhiloxCounter out =
          philox({static_cast<uint32_t>(block_), static_cast<uint32_t>(block_ >> 32),
                  static_cast<uint32_t>(entity_), static_cast<uint32_t>(entity_ >> 32)},
                 key_);
      ++block_;
      second_ = uint64_t{out[3]} << 32 | out[2];
      half_ = 1;
      return uint64_t{out[1]} << 32 | out[0];
    }
    half_ = 0;
    return second_;
  }

  // Uniform in (0, 1], a multiple of 2^-53: its logarithm is finite.
  constexpr double uniform() { return static_cast<double>(((*this)() >> 11) + 1) * 0x1p-53; }

 private:
  PhiloxKey key_{};
  uint64_t entity_ = 0;
  uint64_t block_ = 0;
  uint64_t second_ = 0;
  int half_ = 0;
};

}  // namespace herdsim
