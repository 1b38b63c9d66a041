#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>

#include "tools/scenario/collectives_part.h"
#include "tools/scenario/scenario.pb.h"

namespace herdsim {
namespace {

static_assert(static_cast<int>(CollectiveKind::kBroadcast) == spec::Collective::BROADCAST);
static_assert(static_cast<int>(GroupPart::kRail) == spec::CollectivePhase::RAIL);

CollectiveKind kind_of(spec::Collective::Kind kind) {
  return static_cast<CollectiveKind>(static_cast<int>(kind));
}

std::bitset<kCommunicators> communicators_of(const spec::Collective& m) {
  std::bitset<kCommunicators> chosen;
  const auto take = [&](Communicator c) { chosen.set(static_cast<size_t>(c)); };
  if (!m.has_communicator()) return chosen.set();
  switch (m.communicator()) {
    case spec::Collective::TP:
      take(Communicator::kTensor);
      break;
    case spec::Collective::CP:
      take(Communicator::kContext);
      break;
    case spec::Collective::EP:
      take(Communicator::kExpert);
      break;
    case spec::Collective::DP:
      take(Communicator::kGradient);
      take(Communicator::kShard);
      take(Communicator::kReplica);
      take(Communicator::kExpertGradient);
      break;
    case spec::Collective::ENDS:
      take(Communicator::kEnds);
      break;
    case spec::Collective::WORLD:
      take(Communicator::kWorld);
      break;
  }
  return chosen;
}

class RuleReader {
 public:
  RuleReader(std::string path, SpecReport* report) : path_(std::move(path)), report_(*report) {}

  CollectiveRule read(const spec::Collective& m) {
    CollectiveRule rule{
        .kind = kind_of(m.kind()), .communicators = communicators_of(m), .phases = {}};
    if (m.has_algorithm() == (m.phases_size() > 0)) {
      fault("",
            m.has_algorithm() ? "has both an algorithm and phases" : "says nothing of how it runs",
            "an algorithm or phases");
      return rule;
    }
    if (m.has_algorithm()) {
      rule.phases = phases_of("algorithm", m.algorithm(), rule.kind, false);
      return rule;
    }
    for (int i = 0; i < m.phases_size(); ++i) {
      rule.phases.push_back(phase_of(m.phases(i), fmt::format("phases.{}.algorithm", i)));
    }
    const std::string wrong = phases_fault(rule.kind, rule.phases);
    if (!wrong.empty()) {
      fault("phases", fmt::format("are no {}: {}", collective_kind_name(rule.kind), wrong),
            "phases that reduce, scatter and gather in each host (NODE) and along rails (RAIL), or "
            "in both (ALL), what the "
            "kind does");
    }
    return rule;
  }

 private:
  void fault(const std::string& field, std::string problem, std::string allowed,
             std::string nearest = "") {
    report_.add(field.empty() ? path_ : path_ + "." + field, std::move(problem), std::move(allowed),
                std::move(nearest));
  }

  std::vector<CollectivePhase> phases_of(const std::string& field, const std::string& name,
                                         CollectiveKind kind, bool single) {
    std::vector<std::string> fitting;
    for (const CollectiveAlgorithm& row : collective_algorithms()) {
      std::vector<CollectivePhase> phases = row.phases(kind);
      if (phases.empty() || (single && phases.size() > 1)) continue;
      if (row.name == name) return phases;
      fitting.emplace_back(row.name);
    }
    const bool known = find_collective_algorithm(name) != nullptr;
    fault(field,
          known ? fmt::format("\"{}\" is no way to {} {}", name,
                              single ? "run one phase of" : "run", collective_kind_name(kind))
                : fmt::format("there is no algorithm \"{}\"", name),
          fmt::format("{}", fmt::join(fitting, ", ")), known ? "" : nearest_name(name, fitting));
    return {};
  }

  CollectivePhase phase_of(const spec::CollectivePhase& m, const std::string& field) {
    CollectivePhase phase{.kind = kind_of(m.kind()),
                          .part = static_cast<GroupPart>(static_cast<int>(m.group())),
                          .channels = m.channels(),
                          .efficiency = m.efficiency()};
    if (!m.has_algorithm()) return phase;
    const std::vector<CollectivePhase> named = phases_of(field, m.algorithm(), phase.kind, true);
    if (!named.empty()) phase.algorithm = named.front().algorithm;
    return phase;
  }

  std::string path_;
  SpecReport& report_;
};

}  // namespace

std::vector<CollectiveRule> read_collectives(const spec::Scenario& message,
                                             const ClusterSpec& cluster, SpecReport* report) {
  std::vector<CollectiveRule> rules;
  if (message.collectives_size() > 0 && !cluster.torus.empty()) {
    report->add("collectives", "a torus runs rings of its own along its dimensions",
                "none on a torus");
  }
  for (int i = 0; i < message.collectives_size(); ++i) {
    const std::string path = fmt::format("collectives.{}", i);
    // A kind that is missing, or a number out of range, has been reported.
    if (!report->sound({path + ".kind"})) continue;
    rules.push_back(RuleReader(path, report).read(message.collectives(i)));
  }
  return rules;
}

}  // namespace herdsim
