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

double clock_factor_of_mix(const ClockPowerModel& model, double cap_w, const PowerMix& mix) {
  constexpr PowerMix kNominal{.products = 0.75, .memory = 0.15, .waiting = 0.10};
  constexpr double kMemory = 0.65, kWaiting = 0.45;  // of the limit
  if (cap_w >= model.power_limit_w || mix.products <= 0) return 1;
  const auto left_for_products = [&](double watts, const PowerMix& shares) {
    const double others = kMemory * shares.memory + kWaiting * shares.waiting;
    return (watts * (shares.products + shares.memory + shares.waiting) -
            others * model.power_limit_w) /
           shares.products;
  };
  const double nominal = left_for_products(model.power_limit_w, kNominal) - model.leakage_w;
  const double left = left_for_products(cap_w, mix) - model.leakage_w;
  return std::clamp(std::pow(std::max(left, 0.0) / nominal, 1 / model.exponent), 0.0, 1.0);
}

double diurnal_throughput(double amplitude, double hour, double peak_hour) {
  return 1 - amplitude / 2 * (1 + std::cos(2 * std::numbers::pi * (hour - peak_hour) / 24));
}

double diurnal_amplitude(const ClockPowerModel& model, double kelvin) {
  return 1 - clock_factor_at(model, kelvin);
}

}  // namespace herdsim
