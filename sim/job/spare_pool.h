// Hosts that wait to replace others, and those away for repair.
//
// Each host that leaves takes a repair time and, where technicians are few, waits for one first;
// mended hosts pass a health check and join the pool. With technicians for everybody the number
// away is M/G/infinity: Poisson, whatever the law of the repair (sim/models/queueing.h), which the
// tests hold it to.
//
// A repair may not mend, and the check may be wrong both ways. With b the hosts that come back
// unmended, r the check's recall and f its false alarms, a host is looked at 1 / (1 - b r - (1 - b)
// f) times and is bad when it joins the pool with
//
//   q = b (1 - r) / (b (1 - r) + (1 - b) (1 - f))
//
// so that a job whose hosts all come from repair fails 1 / (1 - q) times as often.
#pragma once

#include <cstdint>
#include <deque>
#include <vector>

#include "sim/base/rng.h"
#include "sim/base/time.h"
#include "sim/engine/engine.h"

namespace herdsim {

class SparePool {
 public:
  struct Shape {
    int64_t spares = 0;
    int64_t technicians = 0;                                 // 0: one for every host
    Duration health_check;                                   // before a mended host is used again
    double unmended_share = 0, recall = 1, false_alarm = 0;  // b, r, f
  };
  // What was wrong with a host: a number of its owner's. kSound: nothing that a repair can leave.
  using Fault = int64_t;
  static constexpr Fault kSound = -1;

  // `engine` must outlive this object. `on_return` runs whenever a host joins the pool. `stream` is
  // drawn from only where repairs or checks can be wrong.
  SparePool(Engine& engine, Shape shape, RngStream stream, InlineCallback on_return)
      : engine_(engine),
        shape_(shape),
        stream_(std::move(stream)),
        free_(shape.spares),
        on_return_(std::move(on_return)) {}
  SparePool(const SparePool&) = delete;  // events hold references to it
  SparePool& operator=(const SparePool&) = delete;

  // Takes up to `wanted` hosts, any of them; how many there were. Faults of those that will fail
  // again are appended to `bad`.
  int64_t take(int64_t wanted, std::vector<Fault>& bad);
  // A second repair of the same host takes as long as the first.
  void send_to_repair(Duration repair, Fault fault = kSound);

  int64_t free() const { return free_; }
  int64_t away() const { return in_repair_ + static_cast<int64_t>(waiting_.size()); }

 private:
  struct Host {
    Duration repair;
    Fault fault = kSound;
  };
  void begin_repair(const Host& host);
  void on_checked(const Host& host);

  Engine& engine_;
  Shape shape_;
  RngStream stream_;
  int64_t free_ = 0;
  std::vector<Fault> bad_;  // of the free
  int64_t in_repair_ = 0;
  std::deque<Host> waiting_;  // for a technician, first come first served
  InlineCallback on_return_;
};

}  // namespace herdsim
