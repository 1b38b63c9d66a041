#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <unordered_map>
#include <vector>

#include "topologies/cluster.h"
#include "topologies/cluster_check.h"
#include "topologies/network_graph.h"

namespace herdsim {
namespace {

// Distances are kept for all pairs of switches.
constexpr int64_t kMostSwitches = 4096;
constexpr size_t kMostLinks = 1 << 18;
constexpr int64_t kMostLanes = 1 << 20;
constexpr int64_t kMostDevices = 1 << 20;

// Sets of switches that are joined.
class Components {
 public:
  explicit Components(size_t count) : parent_(count) {
    std::iota(parent_.begin(), parent_.end(), size_t{0});
  }
  size_t root(size_t i) {
    while (parent_[i] != i) i = parent_[i] = parent_[parent_[i]];
    return i;
  }
  void join(size_t a, size_t b) { parent_[root(a)] = root(b); }

 private:
  std::vector<size_t> parent_;
};

class GraphCheck {
 public:
  GraphCheck(const ClusterSpec& spec, ClusterCheck& check)
      : spec_(spec), graph_(spec.network), check_(check) {}

  void run() {
    if (!has_bounded_size()) return;
    list_names();
    count_hosts();
    plugged_.assign(static_cast<size_t>(hosts_) * static_cast<size_t>(spec_.gpus_per_host), kNone);
    joined_ = Components(graph_.switches.size());
    for (size_t i = 0; i < graph_.links.size(); ++i) check_link(i);
    check_nics();
    check_routes();
  }

 private:
  static constexpr size_t kNone = SIZE_MAX;
  struct Endpoint {
    bool is_switch = false;
    size_t index = 0;
  };

  bool has_bounded_size() {
    const auto too_many = [&](std::string_view field, size_t count, size_t most) {
      if (count > most) {
        check_.add(field, fmt::format("{} entries", count), fmt::format("at most {}", most));
      }
      return count > most;
    };
    bool sound = spec_.gpus > 0 && spec_.gpus_per_host > 0;
    if (graph_.switches.empty() || graph_.hosts.empty()) {
      check_.add("network", graph_.switches.empty() ? "has no switch" : "has no hosts",
                 "switches, hosts and links");
      sound = false;
    }
    sound = !too_many("network.switches", graph_.switches.size(), kMostSwitches) && sound;
    sound =
        !too_many("network.hosts", graph_.hosts.size(), static_cast<size_t>(spec_.gpus)) && sound;
    return !too_many("network.links", graph_.links.size(), kMostLinks) && sound;
  }

  void list_names() {
    const auto add = [&](const std::string& field, const std::string& name, Endpoint endpoint) {
      if (name.empty()) {
        check_.add(field + ".name", "is empty", "a name of its own");
      } else if (!names_.emplace(name, endpoint).second) {
        check_.add(field + ".name", fmt::format("\"{}\" is the name of another", name),
                   "a name of its own");
      }
    };
    for (size_t i = 0; i < graph_.switches.size(); ++i) {
      const std::string field = fmt::format("network.switches[{}]", i);
      add(field, graph_.switches[i].name, {true, i});
      check_.positive(field + ".count", graph_.switches[i].count);
      if (graph_.switches[i].count > kMostDevices) {
        check_.add(field + ".count", fmt::format("{} devices", graph_.switches[i].count),
                   fmt::format("1 to {}", kMostDevices));
      }
    }
    for (size_t i = 0; i < graph_.hosts.size(); ++i) {
      const std::string field = fmt::format("network.hosts[{}]", i);
      add(field, graph_.hosts[i].name, {false, i});
      check_.positive(field + ".count", graph_.hosts[i].count);
    }
  }

  void count_hosts() {
    const int64_t most = spec_.gpus / spec_.gpus_per_host;
    int64_t all = 0;
    for (const NetworkGraph::Hosts& group : graph_.hosts) {
      first_host_.push_back(std::min(all, most));
      all += std::clamp<int64_t>(group.count, 0, most + 1);
      hosts_ = std::min(all, most);
    }
    if (all == most) return;
    check_.add("network.hosts",
               fmt::format("are {}{} hosts", all > most ? "more than " : "", hosts_),
               fmt::format("{}: gpus / gpus_per_host", most));
  }

  // Null, and a fault, if there is nothing of that name.
  const Endpoint* find(const std::string& field, const std::string& name) {
    const auto at = names_.find(name);
    if (at != names_.end()) return &at->second;
    // The nearest of many names takes a while to find: only for the first few.
    constexpr size_t kMostCompared = 1 << 16;
    std::vector<std::string> known;
    if (compared_ < kMostCompared) {
      for (const auto& [other, _] : names_) known.push_back(other);
      std::sort(known.begin(), known.end());
      compared_ += known.size();
    }
    check_.add(field, fmt::format("there is no \"{}\"", name), "the name of a switch or of hosts",
               nearest_name(name, known));
    return nullptr;
  }

  void check_link(size_t i) {
    const NetworkGraph::Link& link = graph_.links[i];
    const std::string field = fmt::format("network.links[{}]", i);
    if (link.lanes < 1 || link.lanes > kMostLanes) {
      check_.add(field + ".lanes", fmt::format("{} lanes", link.lanes),
                 fmt::format("1 to {}", kMostLanes));
    }
    const Endpoint* from = find(field + ".from", link.from);
    const Endpoint* to = find(field + ".to", link.to);
    if (from == nullptr || to == nullptr) return;
    if (from == to) {
      check_.add(field, fmt::format("joins \"{}\" to itself", link.from), "two different ends");
    } else if (!from->is_switch && !to->is_switch) {
      check_.add(field, "joins hosts to hosts", "a switch at one end");
    } else if (from->is_switch && to->is_switch) {
      if (link.nic >= 0) check_.add(field + ".nic", "joins switches", "hosts at one end");
      joined_.join(from->index, to->index);
    } else {
      plug(field, link, from->is_switch ? *to : *from, from->is_switch ? *from : *to);
    }
  }

  // One past the last host of an entry, among those that are counted; counts may be anything.
  int64_t end_of(size_t group) const {
    const int64_t first = first_host_[group];
    return first + std::clamp<int64_t>(graph_.hosts[group].count, 0, hosts_ - first);
  }

  void plug(const std::string& field, const NetworkGraph::Link& link, const Endpoint& hosts,
            const Endpoint& at) {
    if (link.nic >= spec_.gpus_per_host) {
      check_.add(field + ".nic", fmt::format("there is no NIC {}", link.nic),
                 fmt::format("0 to {}", spec_.gpus_per_host - 1));
      return;
    }
    const int64_t first = first_host_[hosts.index];
    const int64_t end = end_of(hosts.index);
    const int64_t first_nic = std::max<int64_t>(0, link.nic);
    const int64_t end_nic = link.nic < 0 ? spec_.gpus_per_host : link.nic + 1;
    for (int64_t host = first; host < end; ++host) {
      for (int64_t nic = first_nic; nic < end_nic; ++nic) {
        size_t& plugged = plugged_[static_cast<size_t>(host * spec_.gpus_per_host + nic)];
        if (plugged != kNone) {
          check_.add(field,
                     fmt::format("NIC {} of host {} of \"{}\" already has a cable to \"{}\"", nic,
                                 host - first, graph_.hosts[hosts.index].name,
                                 graph_.switches[plugged].name),
                     "one link a NIC; several ports are lanes, several planes a switch's count");
          return;
        }
        plugged = at.index;
      }
    }
  }

  void check_nics() {
    for (size_t group = 0; group < graph_.hosts.size(); ++group) {
      const int64_t first = first_host_[group];
      const int64_t end = end_of(group);
      const auto begin = plugged_.begin() + first * spec_.gpus_per_host;
      const auto last = plugged_.begin() + std::max(first, end) * spec_.gpus_per_host;
      const auto loose = std::find(begin, last, kNone);
      if (loose == last) continue;
      const auto nic = (loose - plugged_.begin()) % spec_.gpus_per_host;
      check_.add(fmt::format("network.hosts[{}]", group),
                 fmt::format("NIC {} of host {} of \"{}\" is connected to nothing", nic,
                             (loose - begin) / spec_.gpus_per_host, graph_.hosts[group].name),
                 "a link to a switch");
    }
  }

  void check_routes() {
    // Against the first switch that has a GPU; switches without any must still lead somewhere.
    const auto first =
        std::find_if(plugged_.begin(), plugged_.end(), [](size_t at) { return at != kNone; });
    if (first == plugged_.end()) return;
    for (size_t s = 0; s < graph_.switches.size(); ++s) {
      if (joined_.root(s) == joined_.root(*first)) continue;
      check_.add(fmt::format("network.switches[{}]", s),
                 fmt::format("no route leads from \"{}\" to \"{}\"", graph_.switches[s].name,
                             graph_.switches[*first].name),
                 "links that join all switches");
    }
  }

  const ClusterSpec& spec_;
  const NetworkGraph& graph_;
  ClusterCheck& check_;
  std::unordered_map<std::string, Endpoint> names_;
  size_t compared_ = 0;              // names, with ones that do not exist
  std::vector<int64_t> first_host_;  // by entry
  int64_t hosts_ = 0;
  std::vector<size_t> plugged_;  // by GPU: the switch
  Components joined_{0};
};

}  // namespace

void append_graph_faults(const ClusterSpec& spec, ClusterCheck& check) {
  GraphCheck(spec, check).run();
}

}  // namespace herdsim
