#include "tools/calibrate/replay.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "sim/base/error.h"
#include "tools/calibrate/scenario_probes.h"

namespace herdsim {
namespace {

void check_replayable(const OpGraph& graph, const Backend& backend) {
  Faults faults;
  if (graph.programs.size() != 1) {
    faults.add({.field = "parallel.pp", .problem = "pipelines are not replayed", .allowed = "1"});
  }
  const size_t ranks = graph.grid.ranks();
  if (static_cast<int64_t>(ranks) != backend.ranks()) {
    faults.add(
        {.field = "gpus",
         .problem = fmt::format("the scenario has {} ranks, this job {}", ranks, backend.ranks()),
         .allowed = fmt::format("mpirun -n {}", ranks)});
  }
  for (const Work& work : graph.works.values()) {
    if (work.kind != WorkKind::kCollective) continue;
    const size_t group = graph.grid.group_size(work.communicator);
    if (group != 1 && group != ranks) {
      faults.add({.field = work.name,
                  .problem = fmt::format("is a collective of {} of {} ranks", group, ranks),
                  .allowed = "collectives of all ranks"});
    }
  }
  faults.throw_if_any();
}

// Every kernel and collective of the graph, prepared once however often it runs.
class PreparedWork {
 public:
  PreparedWork(const OpGraph& graph, Backend& backend)
      : backend_(backend), of_work_(graph.works.size()) {
    for (size_t w = 0; w < graph.works.size(); ++w) {
      const Work& work = graph.works[WorkId(w)];
      for (const Kernel& kernel : work.kernels) {
        const auto* traffic = std::get_if<MemoryTraffic>(&kernel.work);
        if (traffic != nullptr && traffic->moved <= Bytes()) continue;
        add(w, probe_of(kernel), std::max<int64_t>(1, std::llround(kernel.repeats)));
      }
      if (work.kind == WorkKind::kCollective && work.bytes > Bytes() && backend.ranks() > 1 &&
          graph.grid.group_size(work.communicator) > 1) {
        add(w, probe_of_transfer(work), 1);
      }
    }
  }
  ~PreparedWork() {
    for (const auto& [key, id] : ids_) backend_.release(id);
  }
  PreparedWork(const PreparedWork&) = delete;
  PreparedWork& operator=(const PreparedWork&) = delete;

  void run(WorkId work) const {
    for (const auto& [id, repeats] : of_work_[work.index()]) {
      for (int64_t i = 0; i < repeats; ++i) backend_.run(id);
    }
  }

 private:
  void add(size_t work, const Probe& probe, int64_t repeats) {
    const std::string key = probe_key(probe);
    if (std::string reason = backend_.why_not(probe); !reason.empty()) {
      throw SpecError({{.field = key, .problem = "cannot be replayed: " + reason}});
    }
    auto found = ids_.find(key);
    if (found == ids_.end()) found = ids_.emplace(key, backend_.prepare(probe)).first;
    of_work_[work].emplace_back(found->second, repeats);
  }

  Backend& backend_;
  std::map<std::string, int> ids_;
  std::vector<std::vector<std::pair<int, int64_t>>> of_work_;
};

}  // namespace

std::vector<double> replay_steps(const OpGraph& graph, Backend& backend, int64_t steps,
                                 const std::function<double()>& clock) {
  check_replayable(graph, backend);
  const PreparedWork work(graph, backend);
  std::vector<double> seconds;
  for (int64_t step = -1; step < steps; ++step) {
    backend.finish();
    const double begin = clock();
    for (const Op& op : graph.programs[ProgramId(0)].ops) work.run(op.work);
    backend.finish();
    if (step >= 0) seconds.push_back(backend.agree(clock() - begin));
  }
  return seconds;
}

}  // namespace herdsim
