// How a product fills a device: in whole tiles, and in whole waves of them.
//
// A kernel cuts C[m, n] in tiles and, where these are few, the sum over k in slices; every SM works
// on one tile at a time. 109 tiles on 108 SMs take as long as 216, so time over size is a staircase
// that no smooth surface follows. The library knows kernels of several tiles and takes the one that
// it believes is quickest:
//
//   waves(t, s) = ceil(ceil(m / rows) ceil(n / columns) s / SMs)
//   time        = max(memory, min over tiles t and slices s of
//                     waves (start + depth nanoseconds_per_k) + sums)
//   depth       = k / s rounded up to 32, and at least 128 where s > 1
//   sums        = 0 where s = 1; else slicing + 8 bytes * s m n / partial-sum rate: written and
//                 read in fp32
//   factor      = (1 + time / scale) ^ exponent
//
// An exponent below one: the SMs of a wave that is not full share memory and power with fewer.
// Every term grows with every size, and so does the factor.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/provenance.h"
#include "sim/models/kernel.h"

namespace herdsim {

struct GemmTile {
  int64_t rows = 0, columns = 0;
  double start_nanoseconds = 0;  // of a wave: first loads, last stores
  double nanoseconds_per_k = 0;
};

struct GemmTiles {
  std::vector<GemmTile> tiles;
  std::vector<int64_t> slices;
  double slicing_nanoseconds = 0;
  double partial_sum_bytes_per_second = 0;
  double memory_bytes_per_second = 0;
  double scale_nanoseconds = 0;
  double exponent = 1;
  Provenance provenance;

  bool empty() const { return tiles.empty(); }
};

// Requires: not empty, every number positive, the exponent at most 1, sizes and `sms` positive.
double tile_factor(const GemmTiles& tiles, const GemmShape& shape, int64_t sms);

}  // namespace herdsim
