// The priority queue under the engine: a 4-ary heap of 16-byte entries ordered by (time, sequence).
//
// `key` packs the sequence number above the slot that holds the callback, so one 128-bit comparison
// orders two events, no two are equal, and the order does not depend on the shape of the heap.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace herdsim {

class EventQueue {
 public:
  static constexpr int kSlotBits = 24;
  static constexpr uint64_t kMaxSlots = uint64_t{1} << kSlotBits;
  static constexpr uint64_t kMaxSequence = (uint64_t{1} << (64 - kSlotBits)) - 1;

  struct Entry {
    int64_t time;
    uint64_t key;
  };

  static uint64_t make_key(uint64_t sequence, uint32_t slot) {
    return sequence << kSlotBits | slot;
  }
  static uint32_t slot_of(uint64_t key) { return static_cast<uint32_t>(key & (kMaxSlots - 1)); }

  bool empty() const { return heap_.empty(); }
  size_t size() const { return heap_.size(); }
  // Requires: !empty().
  const Entry& top() const { return heap_.front(); }

  void push(Entry entry) {
    heap_.push_back(entry);
    sift_up(heap_.size() - 1, entry);
  }

  // Requires: !empty().
  void pop() {
    const Entry last = heap_.back();
    heap_.pop_back();
    if (!heap_.empty()) sift_down(0, last);
  }

  // Keeps the entries for which `keep` holds. Complexity: O(size).
  template <class Keep>
  void filter(Keep keep) {
    std::erase_if(heap_, [&](const Entry& entry) { return !keep(entry); });
    if (heap_.size() < 2) return;
    for (size_t i = (heap_.size() - 2) / kArity + 1; i-- > 0;) sift_down(i, heap_[i]);
  }

 private:
  static constexpr size_t kArity = 4;

  // Times are never negative, so unsigned order is time order.
  __extension__ using Wide = unsigned __int128;
  static Wide order(const Entry& e) { return Wide{static_cast<uint64_t>(e.time)} << 64 | e.key; }
  static bool before(const Entry& a, const Entry& b) { return order(a) < order(b); }

  void sift_up(size_t hole, Entry entry) {
    while (hole > 0) {
      const size_t parent = (hole - 1) / kArity;
      if (!before(entry, heap_[parent])) break;
      heap_[hole] = heap_[parent];
      hole = parent;
    }
    heap_[hole] = entry;
  }

  void sift_down(size_t hole, Entry entry) {
    const size_t size = heap_.size();
    while (true) {
      const size_t first = hole * kArity + 1;
      if (first >= size) break;
      const size_t end = first + kArity < size ? first + kArity : size;
      size_t least = first;
      for (size_t child = first + 1; child < end; ++child) {
        if (before(heap_[child], heap_[least])) least = child;
      }
      if (!before(heap_[least], entry)) break;
      heap_[hole] = heap_[least];
      hole = least;
    }
    heap_[hole] = entry;
  }

  std::vector<Entry> heap_;
};

}  // namespace herdsim
