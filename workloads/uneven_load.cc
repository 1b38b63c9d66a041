#include "workloads/uneven_load.h"

#include <algorithm>
#include <boost/random/lognormal_distribution.hpp>
#include <cmath>

#include "sim/base/rng.h"

namespace herdsim {
namespace {

// The sum over the first `n` tokens of a document of what each attends to.
double triangle(int64_t n) { return 0.5 * static_cast<double>(n) * static_cast<double>(n + 1); }

// Draws the documents of sequences, one after another.
class Packing {
 public:
  Packing(const DocumentLengths& documents, int64_t sequence_length, uint64_t seed, uint64_t entity)
      // Of a log-normal, the mean is exp(mu + sigma^2 / 2).
      : lengths_(std::log(documents.mean_tokens) - 0.5 * documents.sigma * documents.sigma,
                 documents.sigma),
        draws_(seed, "workloads/documents", entity),
        length_(sequence_length) {}

  // Adds what the tokens of the next sequence attend to, to the context rank that has their chunk.
  void add_sequence(std::vector<double>& work) {
    const auto ranks = static_cast<int64_t>(work.size());
    const int64_t chunk = std::max<int64_t>(1, length_ / (2 * ranks));
    for (int64_t at = 0; at < length_;) {
      const int64_t length = std::min(next_length(), length_ - at);
      // A document reaches over chunks; of each it adds the rows there.
      for (int64_t done = 0; done < length;) {
        const int64_t c = std::min((at + done) / chunk, 2 * ranks - 1);
        const int64_t end = c == 2 * ranks - 1 ? length_ : (c + 1) * chunk;
        const int64_t until = std::min(length, end - at);
        const int64_t rank = c < ranks ? c : 2 * ranks - 1 - c;
        work[static_cast<size_t>(rank)] += triangle(until) - triangle(done);
        done = until;
      }
      at += length;
    }
  }

 private:
  int64_t next_length() {
    const double drawn = lengths_(draws_);
    return drawn >= static_cast<double>(length_) ? length_
                                                 : std::max<int64_t>(1, std::llround(drawn));
  }

  boost::random::lognormal_distribution<> lengths_;
  RngStream draws_;
  int64_t length_;
};

}  // namespace

double mean_packed_tokens(const DocumentLengths& documents, int64_t sequence_length) {
  // E[clamp(X, 1, L)] = P(X < 1) + E[X; 1 <= X <= L] + L P(X > L).
  const double mean = documents.mean_tokens, sigma = documents.sigma;
  const auto longest = static_cast<double>(sequence_length);
  if (sigma == 0) return std::clamp(mean, 1.0, longest);
  const double mu = std::log(mean) - 0.5 * sigma * sigma;
  const auto below = [&](double x, double shift) {
    return 0.5 * std::erfc(-((std::log(x) - mu) / sigma - shift) / std::sqrt(2.0));
  };
  const double clamped = below(1, 0) + mean * (below(longest, sigma) - below(1, sigma)) +
                         longest * (1 - below(longest, 0));
  return std::clamp(clamped, 1.0, longest);
}

double mean_document_mask(const DocumentLengths& documents, int64_t sequence_length) {
  // The relative error of the mean is below 3 % of its spread.
  constexpr int kSequences = 1024;
  Packing packing(documents, sequence_length, 0, 0);
  std::vector<double> work(1, 0);
  for (int i = 0; i < kSequences; ++i) packing.add_sequence(work);
  return work[0] / (kSequences * triangle(sequence_length));
}

UnevenLoad expert_load(const WorkloadSpec& spec, const RankGrid& grid) {
  const double busiest = spec.training.expert_load();
  if (!spec.model.is_moe() || spec.plan.ep == 1 || busiest <= 1) return {};
  const auto ranks = static_cast<double>(spec.plan.ep);
  UnevenLoad load;
  load.factors = {busiest, (ranks - busiest) / (ranks - 1)};
  for (size_t r = 0; r < grid.ranks(); ++r) {
    const RankId rank(r);
    const CommGroupId group = grid.group_of(rank, Communicator::kExpert);
    load.row.push_back(grid.member(group, Communicator::kExpert, 0) == rank ? 0 : 1);
  }
  return load;
}

UnevenLoad document_load(const WorkloadSpec& spec, const RankGrid& grid) {
  const Training& training = spec.training;
  const ParallelPlan& plan = spec.plan;
  if (training.documents.mean_tokens <= 0) return {};
  // Ranks that have the whole sequence of some heads do the same.
  const int64_t parts = plan.context == ContextParallel::kAllToAll ? 1 : plan.cp;
  const int64_t micro_batches = training.global_batch / (plan.dp * plan.micro_batch);
  const double mean = static_cast<double>(plan.micro_batch) / static_cast<double>(parts) *
                      triangle(training.sequence_length) * training.document_mask_fraction;
  UnevenLoad load;
  load.columns = static_cast<size_t>(micro_batches);
  load.factors.resize(static_cast<size_t>(plan.dp * parts) * load.columns);
  for (int64_t dp = 0; dp < plan.dp; ++dp) {
    Packing packing(training.documents, training.sequence_length, training.seed,
                    static_cast<uint64_t>(dp));
    for (size_t m = 0; m < load.columns; ++m) {
      std::vector<double> work(static_cast<size_t>(parts), 0);
      for (int64_t s = 0; s < plan.micro_batch; ++s) packing.add_sequence(work);
      for (size_t part = 0; part < work.size(); ++part) {
        const size_t row = static_cast<size_t>(dp * parts) + part;
        load.factors[row * load.columns + m] = work[part] / mean;
      }
    }
  }
  for (size_t r = 0; r < grid.ranks(); ++r) {
    const size_t dp = grid.coordinate(RankId(r), Axis::kDp);
    const size_t part = parts == 1 ? 0 : grid.coordinate(RankId(r), Axis::kCp);
    load.row.push_back(static_cast<uint32_t>(dp * static_cast<size_t>(parts) + part));
  }
  return load;
}

}  // namespace herdsim
