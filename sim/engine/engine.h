// The clock: a queue of events in simulated time.
//
// Events are ordered by (instant, order of the call that made them) and by nothing else. Shared
// resources do not react to each event but once an instant: `on_settle` hooks run after the last
// event of every instant that asked for it with request_settle(), so the order of simultaneous
// changes cannot matter to them. What a hook schedules for the same instant runs next, and settles
// again if asked.
//
//   Engine engine;
//   EventId timeout = engine.after(seconds(600), [&] { abort_collective(); });
//   engine.at(Instant::start() + microseconds(12), [&] { engine.cancel(timeout); });
//   engine.run();
//
// An event is 64 bytes in a slab and 16 in the queue; once both have grown to their working size
// nothing allocates. Limits, checked: 2^24 events pending at once, 2^40 scheduled in one run.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "sim/base/inline_callback.h"
#include "sim/base/time.h"
#include "sim/engine/event_queue.h"

namespace herdsim {

// Names one scheduled event for ever: a number is never given twice, so a late cancel cannot hit a
// stranger.
class EventId {
 public:
  constexpr EventId() = default;  // no event
  explicit constexpr operator bool() const { return key_ != 0; }
  friend constexpr bool operator==(EventId, EventId) = default;

 private:
  friend class Engine;
  explicit constexpr EventId(uint64_t key) : key_(key) {}
  uint64_t key_ = 0;
};

class Engine {
 public:
  Engine() = default;
  Engine(const Engine&) = delete;  // events hold references to it
  Engine& operator=(const Engine&) = delete;

  Instant now() const { return now_; }

  // Runs `callback` at `when`, after everything already scheduled for that instant. At never() it
  // stays pending and does not run. No allocation in the steady state.
  // Requires: when >= now().
  template <class Callable>
  EventId at(Instant when, Callable&& callback) {
    const uint64_t key = reserve(when);
    slots_[EventQueue::slot_of(key)].callback = std::forward<Callable>(callback);
    return EventId(key);
  }
  template <class Callable>
  EventId after(Duration delay, Callable&& callback) {
    return at(now_ + delay, std::forward<Callable>(callback));
  }

  // False if the event has run, is running, was cancelled or never was; then nothing happens.
  // Complexity: amortised O(1).
  bool cancel(EventId id);

  // Hooks run in the order they were added and stay for the life of the engine.
  // Requires: not called from a hook.
  void on_settle(InlineCallback hook) { settle_hooks_.push_back(std::move(hook)); }
  // Asks for the hooks to run at the end of the current instant; asking again changes nothing.
  void request_settle() { settle_requested_ = true; }

  // Runs until nothing is left that can run.
  void run() { run_until(Instant::never()); }
  // Runs every event up to and including `limit`, then, if finite, stands at `limit`.
  // Requires: limit >= now(). An exception of a callback passes through and leaves the rest of the
  // events pending.
  void run_until(Instant limit);

  int64_t events_run() const { return events_run_; }
  int64_t settles_run() const { return settles_run_; }
  size_t pending() const { return slots_.size() - free_slots_.size(); }

 private:
  struct Slot {
    InlineCallback callback;
    uint64_t key = 0;  // of the event it holds; 0 when free
  };

  auto is_alive() const {
    return [this](const EventQueue::Entry& entry) {
      return slots_[EventQueue::slot_of(entry.key)].key == entry.key;
    };
  }
  // Files an event whose callback is to be put into the key's slot.
  uint64_t reserve(Instant when);
  void release(uint32_t slot);
  void run_next();
  void settle();

  Instant now_;
  uint64_t last_sequence_ = 0;  // starts at 1, so that key 0 names no event
  EventQueue queue_;
  std::vector<Slot> slots_;
  std::vector<uint32_t> free_slots_;  // last in, first out: the warmest slot is used again
  std::vector<InlineCallback> settle_hooks_;
  int64_t events_run_ = 0;
  int64_t settles_run_ = 0;
  bool settle_requested_ = false;
};

}  // namespace herdsim
