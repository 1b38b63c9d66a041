#include <mpi.h>

#include <cstdlib>
#include <vector>

#include "calibrate/peers/peers.h"

namespace herdsim {
namespace {

// MPI's own default is kept: an error ends all processes of the job with a message.
class MpiPeers : public Peers {
 public:
  MpiPeers() {
    MPI_Init(nullptr, nullptr);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
    MPI_Comm node;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_, MPI_INFO_NULL, &node);
    MPI_Comm_rank(node, &rank_on_node_);
    MPI_Comm_free(&node);
    const int leads_node = rank_on_node_ == 0 ? 1 : 0;
    leads_node_.resize(static_cast<size_t>(ranks_));
    MPI_Allgather(&leads_node, 1, MPI_INT, leads_node_.data(), 1, MPI_INT, MPI_COMM_WORLD);
  }
  ~MpiPeers() override { MPI_Finalize(); }

  int rank() const override { return rank_; }
  int ranks() const override { return ranks_; }
  int rank_on_node() const override { return rank_on_node_; }
  // The first rank of a node is the first there, so those before `ranks` are counted whole.
  int nodes_of(int64_t ranks) const override {
    int nodes = 0;
    for (size_t r = 0; r < leads_node_.size() && static_cast<int64_t>(r) < ranks; ++r)
      nodes += leads_node_[r];
    return nodes;
  }

  void barrier() override { MPI_Barrier(MPI_COMM_WORLD); }
  double most(double value) override {
    double all = 0;
    MPI_Allreduce(&value, &all, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    return all;
  }
  double agree(double value) override {
    MPI_Bcast(&value, 1, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    return value;
  }
  void broadcast(void* bytes, size_t count) override {
    MPI_Bcast(bytes, static_cast<int>(count), MPI_BYTE, 0, MPI_COMM_WORLD);
  }

  void collective(const std::string& kind, float* in, float* out, int64_t floats) override {
    const int all = static_cast<int>(floats), part = all / ranks_;
    if (kind == "all_reduce") {
      MPI_Allreduce(in, out, all, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    } else if (kind == "all_gather") {
      MPI_Allgather(in, part, MPI_FLOAT, out, part, MPI_FLOAT, MPI_COMM_WORLD);
    } else if (kind == "reduce_scatter") {
      MPI_Reduce_scatter_block(in, out, part, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
    } else if (kind == "all_to_all") {
      MPI_Alltoall(in, part, MPI_FLOAT, out, part, MPI_FLOAT, MPI_COMM_WORLD);
    } else {
      MPI_Sendrecv(in, all, MPI_FLOAT, (rank_ + 1) % ranks_, 0, out, all, MPI_FLOAT,
                   (rank_ + ranks_ - 1) % ranks_, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  }

  std::string version() const override {
    char text[MPI_MAX_LIBRARY_VERSION_STRING];
    int length = 0;
    MPI_Get_library_version(text, &length);
    const std::string whole(text, static_cast<size_t>(length));
    return whole.substr(0, whole.find(','));
  }

  void abort(int status) override {
    MPI_Abort(MPI_COMM_WORLD, status);
    std::_Exit(status);
  }

 private:
  int rank_ = 0, ranks_ = 1, rank_on_node_ = 0;
  std::vector<int> leads_node_;  // by rank: 1 for the first of a node
};

}  // namespace

std::unique_ptr<Peers> make_mpi_peers() { return std::make_unique<MpiPeers>(); }

}  // namespace herdsim
