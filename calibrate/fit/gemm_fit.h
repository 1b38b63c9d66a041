// Fits the time of matrix products to a grid over (m, n, k).
//
//   log(time - floor) = log(roofline(m, n, k)) + surface(log m, log n, log k) + source effect
//
// The roofline is the sum of the arithmetic and the memory time, so it is smooth; the surface is
// multilinear between nodes, found by least squares with a penalty on its second differences and
// reweighted towards least absolute errors (some 5 % of public rows are 8-30 % spikes). A source
// that ran long enough to meet the board's power limit has an effect of its own over the duration
// of the kernel, from half a millisecond on: the `sustained` curve of the result. Sources of short
// bursts have none. Last, nodes are made to never fall along any axis, which is what makes
// gemm_cost monotone.
//
// Where the device's products follow the waves of their tiles, the tile factor (gemm_tiles.h)
// stands in for the roofline.
#pragma once

#include <vector>

#include "calibrate/fit/cross_validation.h"
#include "calibrate/profile/measurements.h"
#include "sim/models/device_profile.h"

namespace herdsim {

// Rows of one benchmark.
struct GemmSource {
  std::vector<GemmMeasurement> rows;
  bool sustained = false;  // ran into the power limit
};

struct GemmGrid {
  std::vector<double> m, n, k;
  GemmTiles tiles;  // empty: the roofline instead, with rows rounded up
};

// Nodes where public tables have rows and times bend.
GemmGrid default_gemm_grid();
// A few more where the surface is what waves leave over.
GemmGrid tiled_gemm_grid(const GemmTiles& tiles);
// Half as many, for a source without scatter that finer nodes could follow.
GemmGrid coarse_gemm_grid();

// Which rows a fit may not look at: those whose fold is `index`.
struct HeldOutProducts {
  int (*fold)(const GemmMeasurement&) = fold_of;
  int index = -1;  // -1: none
};

// `device` gives peak, memory rate and launch floor. Requires: at least one row.
GemmSurface fit_gemm(const std::vector<GemmSource>& sources, DataType dtype,
                     const DeviceProfile& device, const GemmGrid& grid,
                     const HeldOutProducts& held_out = {});

// Cross-validated errors by source and size, and of weights never seen. `device` as above.
void cross_validate_gemm(const std::vector<GemmSource>& sources, DataType dtype,
                         const DeviceProfile& device, const GemmGrid& grid, const std::string& name,
                         ErrorTable& errors);

}  // namespace herdsim
