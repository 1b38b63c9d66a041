// Hosts that wait to replace others, and those away for repair.
//
// Each host that leaves takes a repair time and, where technicians are few, waits for one first;
// mended hosts pass a health check and join the pool. With technicians for everybody the number
// away is M/G/infinity: Poisson, whatever the law of the repair (sim/models/queueing.h), which the
// tests hold it to.
#pragma once

#include <cstdint>
#include <deque>

#include "sim/base/time.h"
#include "sim/engine/engine.h"

namespace herdsim {

class SparePool {
 public:
  struct Shape {
    int64_t spares = 0;
    int64_t technicians = 0;  // 0: one for every host
    Duration health_check;    // before a mended host is used again
  };
  // `engine` must outlive this object. `on_return` runs whenever a host joins the pool.
  SparePool(Engine& engine, Shape shape, InlineCallback on_return)
      : engine_(engine), shape_(shape), free_(shape.spares), on_return_(std::move(on_return)) {}
  SparePool(const SparePool&) = delete;  // events hold references to it
  SparePool& operator=(const SparePool&) = delete;

  // Takes up to `wanted` hosts; how many there were.
  int64_t take(int64_t wanted);
  void send_to_repair(Duration repair);

  int64_t free() const { return free_; }
  int64_t away() const { return in_repair_ + static_cast<int64_t>(waiting_.size()); }

 private:
  void begin_repair(Duration repair);

  Engine& engine_;
  Shape shape_;
  int64_t free_ = 0;
  int64_t in_repair_ = 0;
  std::deque<Duration> waiting_;  // for a technician, first come first served
  InlineCallback on_return_;
};

}  // namespace herdsim
