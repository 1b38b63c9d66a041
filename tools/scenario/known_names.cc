#include "tools/scenario/known_names.h"

#include "topologies/routing.h"
#include "topologies/switch_buffers.h"

namespace herdsim {

std::vector<std::string> known_names(NameKind kind) {
  std::vector<std::string> names;
  switch (kind) {
    case NameKind::kRouting:
      for (const Routing& row : routings()) names.emplace_back(row.name);
      break;
    case NameKind::kBuffers:
      for (const SwitchBuffers& row : switch_buffers()) names.emplace_back(row.name);
      break;
  }
  return names;
}

}  // namespace herdsim
