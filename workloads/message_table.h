// What the passes of one direction start from, by model chunk and micro-batch: as a rule the op
// that receives the message, which its sender looks up when both ends are known.
#pragma once

#include <cstdint>
#include <vector>

#include "sim/base/ids.h"

namespace herdsim {

class MessageTable {
 public:
  MessageTable(int64_t chunks, int64_t micro_batches)
      : micro_batches_(micro_batches), receives_(static_cast<size_t>(chunks * micro_batches)) {}
  void set_receive(int64_t chunk, int64_t micro_batch, OpId op) {
    receives_[slot(chunk, micro_batch)] = op;
  }
  OpId receive(int64_t chunk, int64_t micro_batch) const {
    return receives_[slot(chunk, micro_batch)];
  }

 private:
  size_t slot(int64_t chunk, int64_t micro_batch) const {
    return static_cast<size_t>(chunk * micro_batches_ + micro_batch);
  }
  int64_t micro_batches_;
  std::vector<OpId> receives_;
};

}  // namespace herdsim
