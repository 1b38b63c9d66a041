#include "traces/trace_tracks.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

#include "sim/base/check.h"
#include "traces/printable_text.h"

namespace herdsim {
namespace {

// Digits of the largest value of one field over all ranks.
struct Widths {
  explicit Widths(const StepTrace& trace) {
    for (const RankPlace& p : trace.ranks) {
      pod = std::max(pod, digits(p.pod));
      host = std::max(host, digits(p.host));
      gpu = std::max(gpu, digits(p.gpu_in_host));
      rank = std::max(rank, digits(static_cast<int64_t>(p.rank.index())));
      tp = std::max(tp, digits(p.tp));
      cp = std::max(cp, digits(p.cp));
      pp = std::max(pp, digits(p.pp));
      dp = std::max(dp, digits(p.dp));
    }
  }
  static int digits(int64_t value) { return static_cast<int>(std::to_string(value).size()); }
  int pod = 1, host = 1, gpu = 1, rank = 1, tp = 1, cp = 1, pp = 1, dp = 1;
};

class TreeBuilder {
 public:
  explicit TreeBuilder(const StepTrace& trace) : trace_(trace), widths_(trace) {}

  TrackTree build(bool with_critical_path) {
    tree_.of_rank.assign(trace_.ranks.size(), 0);
    tree_.of_stream.assign(trace_.ranks.size(), {});
    tree_.of_counter.assign(trace_.counters.size(), 0);
    const std::string title =
        trace_.title.empty() ? "cluster" : "cluster: " + printable(trace_.title);
    const uint64_t cluster = add(0, title, 0);
    int32_t order = 0;
    if (with_critical_path) tree_.critical_path = add(cluster, "critical path", order++);
    order = add_cluster_spans(cluster, order);
    order = add_counters(cluster, order, [](const Counter& c) { return c.of_cluster; });
    add_ranks(cluster, order);
    add_lanes();
    return std::move(tree_);
  }

 private:
  uint64_t add(uint64_t parent, std::string name, int32_t order, const Counter* counter = nullptr) {
    tree_.tracks.push_back(
        {.parent = parent, .name = std::move(name), .order = order, .counter = counter});
    if (parent != 0) tree_.tracks[parent - 1].has_children = true;
    return tree_.tracks.size();
  }

  int32_t add_cluster_spans(uint64_t cluster, int32_t order) {
    std::map<std::string, uint64_t> rows;
    for (const ClusterSpan& span : trace_.of_cluster) {
      uint64_t& row = rows[span.name];
      if (row == 0) row = add(cluster, "storage: " + printable(span.name), order++);
      tree_.of_cluster_span.push_back(row);
    }
    return order;
  }

  template <class Wanted>
  int32_t add_counters(uint64_t parent, int32_t order, Wanted wanted) {
    for (size_t i = 0; i < trace_.counters.size(); ++i) {
      const Counter& counter = trace_.counters[i];
      if (wanted(counter))
        tree_.of_counter[i] = add(parent, printable(counter.name), order++, &counter);
    }
    return order;
  }

  void add_ranks(uint64_t cluster, int32_t pod_order) {
    std::vector<size_t> places(trace_.ranks.size());
    std::iota(places.begin(), places.end(), size_t{0});
    const auto key = [&](size_t i) {
      const RankPlace& p = trace_.ranks[i];
      return std::tuple(p.pod, p.host, p.gpu_in_host, p.rank);
    };
    std::sort(places.begin(), places.end(), [&](size_t a, size_t b) { return key(a) < key(b); });
    uint64_t pod = 0, host = 0;
    int32_t host_order = 0, rank_order = 0;
    for (size_t n = 0; n < places.size(); ++n) {
      const RankPlace& p = trace_.ranks[places[n]];
      const RankPlace* before = n == 0 ? nullptr : &trace_.ranks[places[n - 1]];
      const bool new_pod = before == nullptr || before->pod != p.pod;
      if (new_pod) {
        pod = add(cluster, fmt::format("pod {:0{}}", p.pod, widths_.pod), pod_order++);
        host_order = 0;
      }
      if (new_pod || before->host != p.host) {
        host = add(pod, fmt::format("node {:0{}}", p.host, widths_.host), host_order++);
        rank_order = 0;
      }
      tree_.of_rank[places[n]] = add(host, rank_name(p), rank_order++);
    }
  }

  std::string rank_name(const RankPlace& p) const {
    return fmt::format("rank {:0{}} gpu {:0{}} (tp {:0{}} cp {:0{}} pp {:0{}} dp {:0{}})",
                       p.rank.index(), widths_.rank, p.gpu_in_host, widths_.gpu, p.tp, widths_.tp,
                       p.cp, widths_.cp, p.pp, widths_.pp, p.dp, widths_.dp);
  }

  // Streams in the order of their enumeration, then counters; only lanes that hold something.
  void add_lanes() {
    std::vector<std::array<bool, kStreams>> used(trace_.ranks.size());
    for (size_t i = 0, place = 0; i < trace_.spans.size(); ++i) {
      const Span& span = trace_.spans[i];
      while (trace_.ranks[place].rank != span.rank) ++place;
      used[place][static_cast<size_t>(span.stream)] = true;
    }
    for (size_t place = 0; place < used.size(); ++place) {
      for (size_t s = 0; s < kStreams; ++s) {
        if (!used[place][s]) continue;
        tree_.of_stream[place][s] =
            add(tree_.of_rank[place], std::string(kStreamNames[s]), static_cast<int32_t>(s));
      }
    }
    std::vector<int32_t> order(trace_.ranks.size(), static_cast<int32_t>(kStreams));
    for (size_t i = 0; i < trace_.counters.size(); ++i) {
      const Counter& counter = trace_.counters[i];
      if (counter.of_cluster) continue;
      const size_t place = place_of(trace_, counter.rank);
      tree_.of_counter[i] =
          add(tree_.of_rank[place], printable(counter.name), order[place]++, &counter);
    }
  }

  const StepTrace& trace_;
  Widths widths_;
  TrackTree tree_;
};

}  // namespace

TrackTree track_tree(const StepTrace& trace, bool with_critical_path) {
  return TreeBuilder(trace).build(with_critical_path);
}

size_t place_of(const StepTrace& trace, RankId rank) {
  const auto at =
      std::lower_bound(trace.ranks.begin(), trace.ranks.end(), rank,
                       [](const RankPlace& place, RankId id) { return place.rank < id; });
  HERDSIM_CHECK(at != trace.ranks.end() && at->rank == rank) << "rank " << rank.index();
  return static_cast<size_t>(at - trace.ranks.begin());
}

}  // namespace herdsim
