#include "tools/scenario/known_names.h"

namespace herdsim {

std::vector<std::string> known_names(NameKind kind) {
  switch (kind) {
    case NameKind::kRouting:
      return {"e-ecmp", "ecmp", "adaptive"};
  }
  return {};
}

}  // namespace herdsim
