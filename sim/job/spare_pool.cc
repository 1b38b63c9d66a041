#include "sim/job/spare_pool.h"

#include <algorithm>

namespace herdsim {

int64_t SparePool::take(int64_t wanted, std::vector<Fault>& bad) {
  const int64_t taken = std::min(wanted, free_);
  for (int64_t i = 0; i < taken; ++i, --free_) {
    if (bad_.empty()) {
      free_ -= taken - i;
      break;
    }
    const double mark = stream_.uniform() * static_cast<double>(free_);
    if (mark > static_cast<double>(bad_.size())) continue;
    bad.push_back(bad_.back());
    bad_.pop_back();
  }
  return taken;
}

void SparePool::send_to_repair(Duration repair, Fault fault) {
  const Host host{.repair = repair, .fault = fault};
  if (shape_.technicians > 0 && in_repair_ >= shape_.technicians) {
    waiting_.push_back(host);
  } else {
    begin_repair(host);
  }
}

void SparePool::begin_repair(const Host& host) {
  ++in_repair_;
  engine_.after(host.repair, [this, host] {
    --in_repair_;
    if (!waiting_.empty()) {
      const Host next = waiting_.front();
      waiting_.pop_front();
      begin_repair(next);
    }
    // The technician is free while the host proves itself.
    engine_.after(shape_.health_check, [this, host] { on_checked(host); });
  });
}

void SparePool::on_checked(const Host& host) {
  const auto happens = [this](double chance) { return chance > 0 && stream_.uniform() <= chance; };
  const bool bad = host.fault != kSound && happens(shape_.unmended_share);
  if (happens(bad ? shape_.recall : shape_.false_alarm))
    return send_to_repair(host.repair, host.fault);
  if (bad) bad_.push_back(host.fault);
  ++free_;
  on_return_();
}

}  // namespace herdsim
