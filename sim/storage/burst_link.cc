#include "sim/storage/burst_link.h"

#include <algorithm>

#include "sim/base/check.h"

namespace herdsim {
namespace {

constexpr Int128 kNanobytesPerByte = 1'000'000'000;
constexpr int64_t kRefillParts = 1000;

}  // namespace

BurstLink::BurstLink(Engine& engine, FluidNetwork& network, LinkId link, const Rates& rates)
    : engine_(engine),
      network_(network),
      link_(link),
      rates_(rates),
      depth_(kNanobytesPerByte * rates.depth.count()),
      refill_(std::max<Nanobytes>(1, depth_ / kRefillParts)),
      credit_(depth_),
      since_(engine.now()) {
  HERDSIM_CHECK(rates.peak >= rates.sustained && rates.depth >= Bytes())
      << "a peak below the sustained rate";
  network_.set_capacity(link_, depth_ > 0 ? rates_.peak : rates_.sustained);
  if (depth_ > 0 && rates_.peak > rates_.sustained) engine_.on_settle([this] { follow(); });
}

BurstLink::Nanobytes BurstLink::credit_now() const {
  const int64_t elapsed = (engine_.now() - since_).nanoseconds();
  return std::clamp<Nanobytes>(credit_ + Nanobytes{gain_} * elapsed, 0, depth_);
}

Bytes BurstLink::credit() const {
  return Bytes(static_cast<int64_t>(credit_now() / kNanobytesPerByte));
}

int64_t BurstLink::load() const {
  int64_t sum = 0;
  const IncrementalMaxMin& sharing = network_.sharing();
  sharing.for_each_flow_on(link_, [&](FlowId flow, int64_t count) {
    sum += sharing.rate(flow).bytes_per_second() * count;
  });
  return sum;
}

void BurstLink::follow() {
  credit_ = credit_now();
  since_ = engine_.now();
  gain_ = rates_.sustained.bytes_per_second() - load();
  engine_.cancel(next_);
  next_ = EventId();
  const bool bursts = network_.capacity(link_) > rates_.sustained;
  if (bursts && gain_ < 0) {
    if (credit_ == 0) return network_.set_capacity(link_, rates_.sustained);
    schedule(credit_, -gain_);
  } else if (!bursts) {
    if (credit_ >= refill_) return network_.set_capacity(link_, rates_.peak);
    if (gain_ > 0) schedule(refill_ - credit_, gain_);
  }
}

void BurstLink::schedule(Nanobytes distance, int64_t speed) {
  const Nanobytes ticks = (distance + speed - 1) / speed;
  if (ticks >= INT64_MAX) return;
  next_ =
      engine_.after(nanoseconds(static_cast<int64_t>(ticks)), [this] { engine_.request_settle(); });
}

}  // namespace herdsim
