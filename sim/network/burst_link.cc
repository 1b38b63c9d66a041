#include "sim/network/burst_link.h"

#include <algorithm>

#include "sim/base/check.h"

namespace herdsim {
namespace {

constexpr Int128 kNanobytesPerByte = 1'000'000'000;

}  // namespace

BurstLink::BurstLink(Engine& engine, FluidNetwork& network, LinkId link, const BurstRates& rates)
    : engine_(engine),
      network_(network),
      link_(link),
      rates_(rates),
      depth_(kNanobytesPerByte * rates.depth.count()),
      credit_(depth_),
      since_(engine.now()) {
  HERDSIM_CHECK(rates.peak >= rates.sustained && rates.depth >= Bytes())
      << "a peak below the sustained rate";
  const bool can_burst = depth_ > 0 && rates_.peak > rates_.sustained;
  set_bursting(can_burst);
  if (can_burst) engine_.on_settle([this] { follow(); });
}

void BurstLink::set_bursting(bool bursting) {
  bursting_ = bursting;
  network_.set_capacity(link_, bursting ? rates_.peak : rates_.sustained);
}

BurstLink::Nanobytes BurstLink::credit_now() const {
  const int64_t elapsed = (engine_.now() - since_).nanoseconds();
  return std::min(credit_ + Nanobytes{gain_} * elapsed, depth_);
}

Bytes BurstLink::credit() const {
  return Bytes(static_cast<int64_t>(std::max<Nanobytes>(0, credit_now()) / kNanobytesPerByte));
}

BurstLink::Load BurstLink::load() const {
  Load sum;
  const IncrementalMaxMin& sharing = network_.sharing();
  sharing.for_each_flow_on(link_, [&](FlowId flow, int64_t count) {
    sum.bytes_per_second += sharing.rate(flow).bytes_per_second() * count;
    sum.crossings += count;
  });
  return sum;
}

void BurstLink::follow() {
  const Load load = this->load();
  credit_ = credit_now();
  since_ = engine_.now();
  gain_ = rates_.sustained.bytes_per_second() - load.bytes_per_second;
  engine_.cancel(empty_);
  empty_ = EventId();
  if (!bursting_) {
    // A rate is rounded down to whole bytes a second: less than that is missing where flows ask for
    // more than they get.
    if (gain_ >= load.crossings) set_bursting(true);
    return;
  }
  if (gain_ >= 0) return;
  if (credit_ <= 0) return set_bursting(false);
  const Nanobytes ticks = (credit_ - gain_ - 1) / -gain_;
  if (ticks >= INT64_MAX) return;
  empty_ =
      engine_.after(nanoseconds(static_cast<int64_t>(ticks)), [this] { engine_.request_settle(); });
}

}  // namespace herdsim
