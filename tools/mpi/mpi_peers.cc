// Messages between the processes of a sweep, over MPI. Loaded by tools/herdsim/load_peers.cc, so
// nothing of the program's own may be called from here: it exports no symbols.
#include <mpi.h>

#include <limits>
#include <stdexcept>

#include "tools/study/sweep_peers.h"

namespace herdsim {
namespace {

constexpr int kTag = 0;

// MPI's own default is kept: an error ends all processes of the job with a message.
class MpiPeers : public SweepPeers {
 public:
  MpiPeers() {
    int provided = 0;
    // One thread talks; others compute beside it.
    MPI_Init_thread(nullptr, nullptr, MPI_THREAD_FUNNELED, &provided);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  }
  ~MpiPeers() override { MPI_Finalize(); }

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }

  void send(int to, std::string_view bytes) override {
    if (bytes.size() > std::numeric_limits<int>::max()) {
      throw std::length_error("a message of gigabytes");
    }
    MPI_Send(bytes.data(), static_cast<int>(bytes.size()), MPI_BYTE, to, kTag, MPI_COMM_WORLD);
  }

  std::optional<Message> poll() override {
    int is_there = 0;
    MPI_Status status;
    MPI_Iprobe(MPI_ANY_SOURCE, kTag, MPI_COMM_WORLD, &is_there, &status);
    if (is_there == 0) return std::nullopt;
    int count = 0;
    MPI_Get_count(&status, MPI_BYTE, &count);
    Message message{status.MPI_SOURCE, std::string(static_cast<size_t>(count), '\0')};
    MPI_Recv(message.bytes.data(), count, MPI_BYTE, message.from, kTag, MPI_COMM_WORLD,
             MPI_STATUS_IGNORE);
    return message;
  }

 private:
  int rank_ = 0, ranks_ = 1;
};

}  // namespace
}  // namespace herdsim

extern "C" herdsim::SweepPeers* herdsim_mpi_peers() { return new herdsim::MpiPeers; }
