// Other processes that compute points of the same sweep: messages, and who one is among them.
//
// Rank 0 plans, writes and computes; the others ask it for points, one at a time, so that nobody
// waits for a slow one. How messages travel is tools/mpi's business, which the program loads only
// where it was started as one of several processes.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace herdsim {

class SweepPeers {
 public:
  struct Message {
    int from = 0;
    std::string bytes;
  };

  virtual ~SweepPeers() = default;
  virtual int rank() const = 0;
  virtual int ranks() const = 0;
  virtual void send(int to, std::string_view bytes) = 0;
  // A message that is there, if any. All calls come from one thread.
  virtual std::optional<Message> poll() = 0;
};

}  // namespace herdsim
