#include "sim/models/device_profile.h"

#include <algorithm>

namespace herdsim {

std::optional<AttentionKernelId> DeviceProfile::attention_kernel(
    std::string_view kernel_name) const {
  for (size_t i = 0; i < attention.size(); ++i) {
    if (attention[AttentionKernelId(i)].name == kernel_name) return AttentionKernelId(i);
  }
  return std::nullopt;
}

const CollectiveCurve* DeviceProfile::collective(std::string_view kind, int64_t ranks,
                                                 int64_t nodes) const {
  const auto found =
      std::find_if(collectives.begin(), collectives.end(), [&](const CollectiveCurve& c) {
        return c.ranks == ranks && c.nodes == nodes && c.kind == kind;
      });
  return found == collectives.end() ? nullptr : &*found;
}

}  // namespace herdsim
