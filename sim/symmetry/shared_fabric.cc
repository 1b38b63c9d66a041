#include "sim/symmetry/shared_fabric.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "sim/base/check.h"
#include "sim/base/fingerprint.h"

namespace herdsim {
namespace {

size_t classes_of(const JobClasses& job) {
  return job.ranks.classes() + job.link_classes.classes();
}

// What the other jobs make of each link; zero where none crosses it.
std::vector<uint64_t> colours_of_others(const std::vector<MappedJob>& jobs,
                                        const std::vector<JobClasses>& classes, size_t self) {
  std::vector<uint64_t> seen(jobs[self].machine.fabric.links().size(), 0);
  for (size_t j = 0; j < jobs.size(); ++j) {
    if (j == self) continue;
    for (size_t slot = 0; slot < classes[j].links.size(); ++slot) {
      seen[classes[j].links[slot].index()] += mix64(classes[j].link_colours[slot] ^ mix64(j + 1));
    }
  }
  return seen;
}

// One table of link classes, by representative.
class LinkTable {
 public:
  explicit LinkTable(const std::vector<FoldedJob>& jobs) {
    for (const FoldedJob& job : jobs) {
      for (size_t l = 0; l < job.representative_link.size(); ++l) {
        const Row row{job.capacity[LinkId(l)], job.links_of_class[l]};
        const auto [at, is_new] = rows_.emplace(job.representative_link[l], row);
        const auto& [capacity, links] = at->second;
        HERDSIM_CHECK(capacity == row.capacity && links.up == row.links.up &&
                      links.down == row.links.down)
            << "jobs disagree on the class of link " << at->first.index();
      }
    }
    for (const auto& [link, _] : rows_) number_.emplace(link, LinkId(number_.size()));
    for (const FoldedJob& job : jobs) {
      for (const CapacityChange& change : job.changes) {
        changes_.push_back({change.at, number_of(job, change.link), change.capacity});
      }
    }
    // A link that several cross is in the list of each.
    const auto key = [](const CapacityChange& c) { return std::tuple(c.at, c.link, c.capacity); };
    std::stable_sort(changes_.begin(), changes_.end(),
                     [&](const auto& a, const auto& b) { return key(a) < key(b); });
    const auto same = [&](const auto& a, const auto& b) { return key(a) == key(b); };
    changes_.erase(std::unique(changes_.begin(), changes_.end(), same), changes_.end());
  }

  void number_links_of(FoldedJob& job) const {
    for (FoldedLane& lane : job.lanes) {
      for (Crossing& crossing : lane.crossings) crossing.link = number_of(job, crossing.link);
    }
    job.capacity = {};
    job.representative_link.clear();
    job.links_of_class.clear();
    for (const auto& [link, row] : rows_) {
      job.capacity.push_back(row.capacity);
      job.representative_link.push_back(link);
      job.links_of_class.push_back(row.links);
    }
    job.changes = changes_;
  }

 private:
  struct Row {
    Bandwidth capacity;
    FoldedJob::Directions links;
  };

  // Requires: the job's classes are not numbered by this table yet.
  LinkId number_of(const FoldedJob& job, LinkId link_class) const {
    return number_.at(job.representative_link[link_class.index()]);
  }

  std::map<LinkId, Row> rows_;
  std::map<LinkId, LinkId> number_;
  std::vector<CapacityChange> changes_;
};

}  // namespace

std::vector<JobClasses> classify_together(const std::vector<MappedJob>& jobs) {
  std::vector<JobClasses> classes;
  size_t total = 0;
  for (const MappedJob& job : jobs) {
    classes.push_back(classify(job.graph, job.machine, job.map));
    total += classes_of(classes.back());
  }
  for (;;) {
    std::vector<JobClasses> finer;
    size_t now = 0;
    for (size_t j = 0; j < jobs.size(); ++j) {
      const MappedJob& job = jobs[j];
      finer.push_back(
          classify(job.graph, job.machine, job.map, colours_of_others(jobs, classes, j)));
      now += classes_of(finer.back());
    }
    // The colours of the others as they are now are in these classes, so these are the ones to
    // keep.
    classes = std::move(finer);
    if (now == total) return classes;
    total = now;
  }
}

std::vector<FoldedJob> fold_together(const std::vector<MappedJob>& jobs,
                                     const std::vector<JobClasses>& classes) {
  std::vector<FoldedJob> folded;
  for (size_t j = 0; j < jobs.size(); ++j) {
    folded.push_back(fold(jobs[j].graph, jobs[j].machine, jobs[j].map, classes[j]));
  }
  const LinkTable table(folded);
  for (FoldedJob& job : folded) table.number_links_of(job);
  return folded;
}

}  // namespace herdsim
