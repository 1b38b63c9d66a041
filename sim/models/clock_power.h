// How fast a GPU clocks under its power limit, and how that follows the weather.
//
// At the limit, power is leakage, which grows with temperature, plus switching, which grows with
// the clock:
//   P = L e^{b (T - T0)} + (P0 - L) f^n,   f = 1 at T0
// so a warmer afternoon lowers the clock. n = 2.36 is published (POLCA, arXiv:2308.12908: 22 % less
// peak power for 10 % less performance); L and b are assumed, and span the 1-2 % daily swing Llama
// 3 reports (arXiv:2407.21783, 3.3.4).
#pragma once

namespace herdsim {

struct ClockPowerModel {
  double power_limit_w = 700;
  double idle_w = 100;                // assumed: no kernel runs
  double leakage_w = 90;              // assumed: 90 to 120
  double leakage_per_kelvin = 0.015;  // assumed: 0.015 to 0.02
  double exponent = 2.36;             // published
};

// Clock over nominal when the coolant is `kelvin_above` warmer than where it was measured. 1 at 0;
// above 1 when colder. Ensures: 0 where leakage alone exceeds the limit.
double clock_factor_at(const ClockPowerModel& model, double kelvin_above);

// Clock over nominal under a power cap: (cap/limit)^(1/n); 600 W of 700 W gives 0.937. At most 1.
double clock_factor_under_cap(const ClockPowerModel& model, double cap_w);

// What a GPU does, in shares of a while that is long for its power controller (tens of
// milliseconds) and short for a step.
struct PowerMix {
  double products = 0;  // products and attention, whose power follows the clock
  double memory = 0;    // kernels that memory bounds
  double waiting = 0;   // for transfers between GPUs
};

// Clock over nominal under a power cap of the mean over a mix: products take what the others leave.
// Nominal is what a mix of 0.75, 0.15 and 0.10, as of tuned dense training, sustains at the limit.
// Kernels that memory bounds take 0.65 of the limit and waiting 0.45 of it (assumed, 0.55 to 0.75
// and 0.35 to 0.55), whatever the clock; so a step that never waits runs at a lower clock than one
// with exposed transfers. 500 W of 700 W gives 0.80 where nothing is waited for, 0.845 with a fifth.
// Ensures: in [0, 1], and 1 at the limit: how mixes differ there is in what a device is measured to
// sustain.
double clock_factor_of_mix(const ClockPowerModel& model, double cap_w, const PowerMix& mix);

// Throughput over the day's best: 1 - amplitude/2 (1 + cos(2 pi (t - peak)/24 h)); lowest at the
// hour of the peak.
double diurnal_throughput(double amplitude, double hour, double peak_hour);

// The amplitude (peak to trough of throughput) that a day-night swing of `kelvin` gives.
double diurnal_amplitude(const ClockPowerModel& model, double kelvin);

}  // namespace herdsim
