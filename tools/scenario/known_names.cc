#include "tools/scenario/known_names.h"

#include "sim/checkpoint/checkpoint_policy.h"
#include "sim/job/recovery_policy.h"
#include "sim/reliability/reliability_base.h"
#include "topologies/routing.h"

namespace herdsim {
namespace {

template <typename Row>
std::vector<std::string> names_of(const std::vector<Row>& rows) {
  std::vector<std::string> names;
  for (const Row& row : rows) names.emplace_back(row.name);
  return names;
}

}  // namespace

std::vector<std::string> known_names(NameKind kind) {
  switch (kind) {
    case NameKind::kRouting:
      return names_of(routings());
    case NameKind::kReliability:
      return names_of(reliability_bases());
    case NameKind::kCheckpointPolicy:
      return names_of(checkpoint_policies());
    case NameKind::kRecoveryPolicy:
      return names_of(recovery_policies());
  }
  return {};
}

}  // namespace herdsim
