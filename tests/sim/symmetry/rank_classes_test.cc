// classify() against the definition of an equitable partition, checked vertex by vertex.
#include "sim/symmetry/rank_classes.h"

#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "tests/sim/executor/job_cases.h"

namespace herdsim {
namespace {

// What a vertex sees: numbers that members of one class must share, in any order.
using Sight = std::multiset<std::tuple<int, size_t, int64_t, int64_t>>;

class Sights {
 public:
  Sights(const PlannedJob& job, const JobClasses& classes) : job_(job), classes_(classes) {
    slot_.assign(job.fabric.links().size(), 0);
    for (size_t i = 0; i < classes.links.size(); ++i) slot_[classes.links[i].index()] = i;
    ranks_.resize(job.graph.grid.ranks());
    links_.resize(classes.links.size());
    for (size_t r = 0; r < ranks_.size(); ++r) {
      ranks_[r].emplace(0, 0, job.graph.program_of(RankId(r)).index(),
                        std::llround(job.factors[RankId(r)] * 1e12));
    }
    for (size_t l = 0; l < links_.size(); ++l) {
      links_[l].emplace(0, 0, job.links.capacity[classes.links[l]].bytes_per_second(), 0);
    }
    for (size_t lane = 0; lane < job.map.lanes.size(); ++lane) look_at(lane);
  }

  const std::vector<Sight>& ranks() const { return ranks_; }
  const std::vector<Sight>& links() const { return links_; }
  const std::vector<Sight>& instances(size_t lane) const { return instances_[lane]; }

 private:
  void look_at(size_t l) {
    const Lane& lane = job_.map.lanes[l];
    std::vector<Sight> sights(lane.instances);
    for (size_t i = 0; i < lane.instances; ++i) {
      const int64_t own = classes_.lanes[l].class_of[i];
      sights[i].emplace(0, l, lane.shape_of[i], lane.own_bound[i].bytes_per_second());
      for (const LaneCrossing& crossing : lane.path(i)) {
        const size_t slot = slot_[crossing.link.index()];
        sights[i].emplace(1, l, classes_.link_classes.class_of[slot], crossing.count);
        links_[slot].emplace(1, l, own, crossing.count);
      }
      for (const auto& [role, rank] : ranks_of(lane, i)) {
        sights[i].emplace(2 + role, l, classes_.ranks.class_of[rank.index()], 0);
        ranks_[rank.index()].emplace(2 + role, l, own, 0);
      }
    }
    instances_.push_back(std::move(sights));
  }

  std::vector<std::pair<int, RankId>> ranks_of(const Lane& lane, size_t i) const {
    const RankGrid& grid = job_.graph.grid;
    std::vector<std::pair<int, RankId>> ranks;
    if (lane.is_message) {
      const RankId sender(i);
      const auto& peers = job_.map.peers[job_.graph.program_of(sender)];
      if (lane.slot >= peers.size()) return {};
      return {{0, sender}, {1, grid.with(sender, Axis::kPp, peers[lane.slot].index())}};
    }
    for (size_t m = 0; m < grid.group_size(lane.communicator); ++m) {
      ranks.emplace_back(0, grid.member(CommGroupId(i), lane.communicator, m));
    }
    return ranks;
  }

  const PlannedJob& job_;
  const JobClasses& classes_;
  std::vector<size_t> slot_;
  std::vector<Sight> ranks_, links_;
  std::vector<std::vector<Sight>> instances_;
};

void expect_equal_within_classes(const Partition& partition, const std::vector<Sight>& sights,
                                 const char* what) {
  ASSERT_EQ(partition.class_of.size(), sights.size());
  std::vector<uint32_t> sizes(partition.classes(), 0);
  uint32_t next = 0;
  for (size_t v = 0; v < sights.size(); ++v) {
    const uint32_t c = partition.class_of[v];
    ASSERT_LT(c, partition.classes());
    const uint32_t representative = partition.representative[c];
    if (c == next) {
      EXPECT_EQ(representative, v) << "classes are numbered by their first member";
      ++next;
    }
    ++sizes[c];
    ASSERT_EQ(sights[v], sights[representative]) << what << " " << v << " of class " << c;
  }
  EXPECT_EQ(sizes, partition.size);
}

TEST(RankClasses, members_of_a_class_see_the_same_neighbours) {
  for (const JobCase& c : job_cases()) {
    SCOPED_TRACE(c.name);
    const PlannedJob job(c.scenario());
    const JobClasses classes = job.classes();
    const Sights sights(job, classes);
    expect_equal_within_classes(classes.ranks, sights.ranks(), "rank");
    expect_equal_within_classes(classes.link_classes, sights.links(), "link");
    for (size_t l = 0; l < job.map.lanes.size(); ++l) {
      expect_equal_within_classes(classes.lanes[l], sights.instances(l), "transfer");
    }
  }
}

TEST(RankClasses, singletons_are_every_vertex_alone) {
  const PlannedJob job(job_cases().front().scenario());
  const JobClasses singles = job.singles();
  const JobClasses classes = job.classes();
  EXPECT_EQ(singles.ranks.classes(), job.graph.grid.ranks());
  EXPECT_EQ(singles.link_classes.classes(), singles.links.size());
  EXPECT_EQ(singles.links, classes.links);
}

size_t classes_of(const std::vector<std::string>& more) {
  std::vector<std::string> sets = {"gpus=256", "parallel.dp=2", "training.global_batch=32",
                                   "recovery.spares=0"};
  sets.insert(sets.end(), more.begin(), more.end());
  return PlannedJob(load_scenario("llama3-405b-16384", sets)).classes().ranks.classes();
}

TEST(RankClasses, a_symmetric_job_has_one_class_a_stage) { EXPECT_EQ(classes_of({}), 16u); }

TEST(RankClasses, one_slow_part_splits_few_classes_off) {
  const size_t slow_gpu = classes_of({"cluster.degraded={gpu: 77 compute_factor: 0.9}"});
  const size_t slow_nic = classes_of({"cluster.degraded={gpu: 77 nic_factor: 0.5}"});
  EXPECT_GT(slow_gpu, 16u);
  EXPECT_GT(slow_nic, 16u);
  EXPECT_LE(slow_gpu, 64u);
  EXPECT_LE(slow_nic, 64u);
}

TEST(FoldedJob, crossings_of_classes_add_up_to_those_of_the_job) {
  for (const JobCase& c : job_cases()) {
    SCOPED_TRACE(c.name);
    const PlannedJob job(c.scenario());
    const JobClasses classes = job.classes();
    const FoldedJob folded = job.fold_with(classes);
    for (size_t l = 0; l < job.map.lanes.size(); ++l) {
      std::map<std::pair<uint32_t, uint32_t>, int64_t> whole, few;  // by transfer and link class
      const Lane& lane = job.map.lanes[l];
      for (size_t i = 0; i < lane.instances; ++i) {
        for (const LaneCrossing& crossing : lane.path(i)) {
          const auto at =
              std::lower_bound(classes.links.begin(), classes.links.end(), crossing.link);
          const auto slot = static_cast<size_t>(at - classes.links.begin());
          whole[{classes.lanes[l].class_of[i], classes.link_classes.class_of[slot]}] +=
              crossing.count;
        }
      }
      for (uint32_t t = 0; t < folded.lanes[l].transfers.size(); ++t) {
        for (const Crossing& crossing : folded.lanes[l].path(folded.lanes[l].transfers[t])) {
          const auto link = static_cast<uint32_t>(crossing.link.index());
          few[{t, link}] += crossing.count * classes.link_classes.size[link];
        }
      }
      EXPECT_EQ(few, whole) << "lane " << l;
    }
  }
}

TEST(FoldedJob, members_add_up_to_the_ranks_and_links_are_as_fast_as_their_classes) {
  for (const JobCase& c : job_cases()) {
    SCOPED_TRACE(c.name);
    const PlannedJob job(c.scenario());
    const JobClasses classes = job.classes();
    const FoldedJob folded = job.fold_with(classes);
    int64_t members = 0;
    for (const FoldedRank& rank : folded.ranks) members += rank.members;
    EXPECT_EQ(members, job.scenario.gpus);
    for (size_t i = 0; i < classes.links.size(); ++i) {
      EXPECT_EQ(folded.capacity[LinkId(classes.link_classes.class_of[i])],
                job.links.capacity[classes.links[i]]);
    }
  }
}

}  // namespace
}  // namespace herdsim
