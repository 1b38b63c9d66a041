#include "sim/network/fluid_network.h"

#include <algorithm>

#include "sim/base/check.h"

namespace herdsim {
namespace {

constexpr int64_t kNanobytesPerByte = 1'000'000'000;

Int128 rounded_up(Int128 amount, int64_t divisor) {
  // One machine division where it fits: below 18 GB left, that is nearly always.
  if (amount <= INT64_MAX - divisor) return (static_cast<int64_t>(amount) + divisor - 1) / divisor;
  return (amount + divisor - 1) / divisor;
}

Duration time_for(Int128 nanobytes, int64_t rate) {
  if (nanobytes <= 0) return Duration::zero();
  if (rate == 0) return Duration::infinite();
  const Int128 ticks = rounded_up(nanobytes, rate);
  return ticks >= INT64_MAX ? Duration::infinite() : nanoseconds(static_cast<int64_t>(ticks));
}

}  // namespace

FluidNetwork::FluidNetwork(Engine& engine, std::span<const Bandwidth> capacity_of_link,
                           LinkAccounting accounting)
    : engine_(engine), sharing_(capacity_of_link) {
  if (accounting == LinkAccounting::kOn) carried_.assign(capacity_of_link.size(), 0);
  engine_.on_settle([this] { settle(); });
}

TransferId FluidNetwork::start(Bytes volume, std::span<const Crossing> path, Bandwidth rate_cap,
                               InlineCallback on_done) {
  HERDSIM_CHECK(volume >= Bytes()) << volume.count() << " bytes to transfer";
  // Nothing to move takes nobody's share, not even for an instant.
  const FlowId flow = sharing_.add(volume > Bytes() ? path : std::span<const Crossing>(), rate_cap);
  if (flow.index() == transfers_.size()) {
    transfers_.push_back({});
    on_done_.push_back({});
  }
  Transfer& transfer = transfers_[flow];
  transfer.left = Nanobytes{volume.count()} * kNanobytesPerByte;
  transfer.since = engine_.now().nanoseconds();
  transfer.rate = 0;
  transfer.serial = ++last_serial_;
  transfer.completion = EventId();
  transfer.volume = volume;
  on_done_[flow] = std::move(on_done);
  ++running_;
  engine_.request_settle();
  return TransferId(flow, transfer.serial);
}

TransferId FluidNetwork::start_under_way(Bytes volume, std::span<const Crossing> path,
                                         Bandwidth rate_cap, Duration since,
                                         InlineCallback on_done) {
  const TransferId id = start(volume, path, rate_cap, std::move(on_done));
  Transfer& transfer = transfers_[id.flow_];
  transfer.left -= Nanobytes{rate_alone(path, rate_cap).bytes_per_second()} * since.nanoseconds();
  HERDSIM_CHECK(transfer.left > 0) << "a transfer that has ended is under way";
  return id;
}

Bandwidth FluidNetwork::rate_alone(std::span<const Crossing> path, Bandwidth rate_cap) const {
  for (const Crossing& crossing : path) {
    rate_cap = std::min(rate_cap, sharing_.capacity(crossing.link) / crossing.count);
  }
  return rate_cap;
}

bool FluidNetwork::stop(TransferId id) {
  Transfer* transfer = find(id);
  if (transfer == nullptr) return false;
  engine_.cancel(transfer->completion);
  end(id.flow_);
  on_done_[id.flow_].reset();
  return true;
}

void FluidNetwork::set_capacity(LinkId link, Bandwidth capacity) {
  sharing_.set_capacity(link, capacity);
  engine_.request_settle();
}

bool FluidNetwork::is_running(TransferId id) const { return find(id) != nullptr; }

Bandwidth FluidNetwork::rate(TransferId id) const {
  const Transfer* transfer = find(id);
  return transfer == nullptr ? Bandwidth() : Bandwidth::from_bytes_per_second(transfer->rate);
}

Bytes FluidNetwork::left(TransferId id) const {
  const Transfer* transfer = find(id);
  if (transfer == nullptr) return Bytes();
  return Bytes(static_cast<int64_t>(rounded_up(left_now(*transfer), kNanobytesPerByte)));
}

std::vector<TransferId> FluidNetwork::stalled() const {
  std::vector<TransferId> result;
  for (size_t f = 0; f < transfers_.size(); ++f) {
    const Transfer& transfer = transfers_[FlowId(f)];
    if (transfer.serial != 0 && transfer.rate == 0 && transfer.left > 0) {
      result.push_back(TransferId(FlowId(f), transfer.serial));
    }
  }
  std::sort(result.begin(), result.end(),
            [](TransferId a, TransferId b) { return a.serial_ < b.serial_; });
  return result;
}

Bytes FluidNetwork::carried(LinkId link) const {
  HERDSIM_CHECK(carried_.size() > 0) << "link accounting is off";
  Nanobytes sum = carried_[link];
  sharing_.for_each_flow_on(link, [&](FlowId flow, int64_t count) {
    const Transfer& transfer = transfers_[flow];
    sum += (Nanobytes{transfer.volume.count()} * kNanobytesPerByte - left_now(transfer)) * count;
  });
  return Bytes(static_cast<int64_t>(rounded_up(sum, kNanobytesPerByte)));
}

FluidNetwork::Transfer* FluidNetwork::find(TransferId id) {
  if (id.serial_ == 0 || transfers_[id.flow_].serial != id.serial_) return nullptr;
  return &transfers_[id.flow_];
}

const FluidNetwork::Transfer* FluidNetwork::find(TransferId id) const {
  if (id.serial_ == 0 || transfers_[id.flow_].serial != id.serial_) return nullptr;
  return &transfers_[id.flow_];
}

// The last nanosecond may have room for more than what was left.
FluidNetwork::Nanobytes FluidNetwork::left_now(const Transfer& transfer) const {
  const int64_t elapsed = engine_.now().nanoseconds() - transfer.since;
  return std::max(Nanobytes{0}, transfer.left - Nanobytes{transfer.rate} * elapsed);
}

void FluidNetwork::settle() {
  for (const FlowId flow : sharing_.solve()) {
    Transfer& transfer = transfers_[flow];
    transfer.left = left_now(transfer);
    transfer.since = engine_.now().nanoseconds();
    transfer.rate = sharing_.rate(flow).bytes_per_second();
    schedule_completion(flow);
  }
}

void FluidNetwork::schedule_completion(FlowId flow) {
  Transfer& transfer = transfers_[flow];
  engine_.cancel(transfer.completion);
  const Duration rest = time_for(transfer.left, transfer.rate);
  transfer.completion =
      rest.is_finite() ? engine_.after(rest, [this, flow] { finish(flow); }) : EventId();
}

void FluidNetwork::finish(FlowId flow) {
  // Free before the callback runs, so that what it starts reuses the warm memory and sees the flow
  // gone.
  InlineCallback on_done = std::move(on_done_[flow]);
  end(flow);
  if (on_done) on_done();
}

void FluidNetwork::end(FlowId flow) {
  Transfer& transfer = transfers_[flow];
  if (!carried_.empty()) {
    const Nanobytes passed =
        Nanobytes{transfer.volume.count()} * kNanobytesPerByte - left_now(transfer);
    for (const PathPool::Step& s : sharing_.path(flow))
      carried_[LinkId(s.link)] += passed * s.count;
  }
  sharing_.remove(flow);
  transfer.serial = 0;
  --running_;
  engine_.request_settle();
}

}  // namespace herdsim
