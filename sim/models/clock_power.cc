#include "sim/models/clock_power.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace herdsim {

double clock_factor_at(const ClockPowerModel& model, double kelvin_above) {
  const double leakage = model.leakage_w * std::exp(model.leakage_per_kelvin * kelvin_above);
  const double left = (model.power_limit_w - leakage) / (model.power_limit_w - model.leakage_w);
  return left <= 0 ? 0 : std::pow(left, 1 / model.exponent);
}

double clock_factor_under_cap(const ClockPowerModel& model, double cap_w) {
  return std::min(1.0, std::pow(std::max(cap_w, 0.0) / model.power_limit_w, 1 / model.exponent));
}

double diurnal_throughput(double amplitude, double hour, double peak_hour) {
  return 1 - amplitude / 2 * (1 + std::cos(2 * std::numbers::pi * (hour - peak_hour) / 24));
}

double diurnal_amplitude(const ClockPowerModel& model, double kelvin) {
  return 1 - clock_factor_at(model, kelvin);
}

}  // namespace herdsim
