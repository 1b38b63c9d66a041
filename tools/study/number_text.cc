#include "tools/study/number_text.h"

#include <fmt/format.h>

#include <cmath>

#include "sim/base/text.h"

namespace herdsim {

std::string number_text(double value) {
  if (std::abs(value) >= 1e7) return fmt::format("{:.3e}", value);
  if (std::abs(value) >= 1'000) return count_text(static_cast<int64_t>(std::llround(value)));
  return fmt::format("{:.3g}", value);
}

}  // namespace herdsim
