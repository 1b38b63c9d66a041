#include "sim/job/spare_pool.h"

#include <algorithm>

namespace herdsim {

int64_t SparePool::take(int64_t wanted) {
  const int64_t taken = std::min(wanted, free_);
  free_ -= taken;
  return taken;
}

void SparePool::send_to_repair(Duration repair) {
  if (shape_.technicians > 0 && in_repair_ >= shape_.technicians) {
    waiting_.push_back(repair);
  } else {
    begin_repair(repair);
  }
}

void SparePool::begin_repair(Duration repair) {
  ++in_repair_;
  engine_.after(repair, [this] {
    --in_repair_;
    if (!waiting_.empty()) {
      const Duration next = waiting_.front();
      waiting_.pop_front();
      begin_repair(next);
    }
    // The technician is free while the host proves itself.
    engine_.after(shape_.health_check, [this] {
      ++free_;
      on_return_();
    });
  });
}

}  // namespace herdsim
