#include "tools/scenario/known_names.h"

#include <filesystem>

#include "calibrate/profile/profile_file.h"
#include "tools/scenario/spec_source.h"

namespace herdsim {

std::vector<std::string> known_names(NameKind kind) {
  switch (kind) {
    case NameKind::kRouting:
      return {"e-ecmp", "ecmp", "adaptive"};
    case NameKind::kReliability:
      return {"llama3-54-days"};
    case NameKind::kCheckpointPolicy:
      return {"none", "sync", "async"};
    case NameKind::kRecoveryPolicy:
      return {"restart-with-spares"};
  }
  return {};
}

DeviceProfile find_profile(const std::string& name_or_path, const std::string& folder) {
  const std::filesystem::path path(name_or_path);
  if (is_spec_file(name_or_path) && path.is_relative() && !folder.empty()) {
    return load_profile((std::filesystem::path(folder) / path).string());
  }
  return load_profile(name_or_path);
}

}  // namespace herdsim
