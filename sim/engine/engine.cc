#include "sim/engine/engine.h"

#include "sim/base/check.h"

namespace herdsim {

uint64_t Engine::reserve(Instant when) {
  HERDSIM_CHECK(when >= now_) << "an event at " << when.nanoseconds() << " ns, scheduled at "
                              << now_.nanoseconds() << " ns, would run in the past";
  HERDSIM_CHECK(last_sequence_ < EventQueue::kMaxSequence) << "2^40 events scheduled in one run";
  uint32_t slot = 0;
  if (free_slots_.empty()) {
    HERDSIM_CHECK(slots_.size() < EventQueue::kMaxSlots) << "2^24 events pending at once";
    slot = static_cast<uint32_t>(slots_.size());
    slots_.emplace_back();
  } else {
    slot = free_slots_.back();
    free_slots_.pop_back();
  }
  const uint64_t key = EventQueue::make_key(++last_sequence_, slot);
  slots_[slot].key = key;
  queue_.push({when.nanoseconds(), key});
  return key;
}

bool Engine::cancel(EventId id) {
  const uint32_t slot = EventQueue::slot_of(id.key_);
  if (!id || slot >= slots_.size() || slots_[slot].key != id.key_) return false;
  slots_[slot].callback.reset();
  release(slot);
  queue_.forget_earliest();
  // The entry stays in the queue and is skipped when it comes up. Sweeping when half the queue is
  // dead keeps both the queue's size and the cost of a cancel within a factor of two.
  const size_t dead = queue_.size() - pending();
  if (dead > 64 && dead > queue_.size() / 2) queue_.sweep(is_alive());
  return true;
}

void Engine::run_until(Instant limit) {
  HERDSIM_CHECK(limit >= now_) << "asked to run back to " << limit.nanoseconds() << " ns";
  while (true) {
    const int64_t next = queue_.earliest(is_alive());
    if (settle_requested_ && next > now_.nanoseconds()) {
      settle();
      continue;
    }
    if (next > limit.nanoseconds() || next == EventQueue::kNever) break;
    run_next();
  }
  if (limit != Instant::never()) now_ = limit;
}

void Engine::run_next() {
  const EventQueue::Entry entry = queue_.pop(is_alive());
  const uint32_t slot = EventQueue::slot_of(entry.key);
  // Moved out and released first: the callback may schedule, which may move the slab, and its slot
  // is the warmest.
  InlineCallback callback = std::move(slots_[slot].callback);
  release(slot);
  now_ = Instant::from_nanoseconds(entry.time);
  ++events_run_;
  callback();
}

void Engine::settle() {
  settle_requested_ = false;
  ++settles_run_;
  for (InlineCallback& hook : settle_hooks_) hook();
}

void Engine::release(uint32_t slot) {
  slots_[slot].key = 0;
  free_slots_.push_back(slot);
}

}  // namespace herdsim
