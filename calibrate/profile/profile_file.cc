#include "calibrate/profile/profile_file.h"

#include <algorithm>
#include <filesystem>
#include <span>
#include <utility>

#include "calibrate/profile/profile_proto.h"
#include "sim/base/error.h"
#include "sim/base/read_file.h"

namespace herdsim {

// Generated from catalog/profiles: (file, text).
std::span<const std::pair<std::string_view, std::string_view>> embedded_profiles();

namespace {

// "catalog/profiles/h100-sxm5-80gb.textproto" -> "h100-sxm5-80gb"
std::string catalogue_name(std::string_view file) {
  file.remove_prefix(file.rfind('/') + 1);
  return std::string(file.substr(0, file.find('.')));
}

bool is_path(std::string_view argument) {
  return argument.find('/') != std::string_view::npos || argument.ends_with(".textproto");
}

// A profile on a profile on a profile: beyond this they stand in a circle.
constexpr int kDeepestBase = 8;

DeviceProfile load(const std::string& name_or_path, int depth);

DeviceProfile load_text(std::string_view text, const std::string& file, int depth) {
  return profile_from_text(text, file, [&](const std::string& base) {
    if (depth == kDeepestBase) {
      throw SpecError({{.file = file, .field = "base", .problem = "leads to more than 8 bases, or round in a circle"}});
    }
    if (!is_path(base)) return load(base, depth + 1);
    const std::filesystem::path path(base);
    return load(path.is_absolute() ? base : (std::filesystem::path(file).parent_path() / path).string(), depth + 1);
  });
}

DeviceProfile load(const std::string& name_or_path, int depth) {
  if (!is_path(name_or_path)) {
    return load_text(profile_text(name_or_path), "catalog/profiles/" + name_or_path + ".textproto", depth);
  }
  return load_text(read_file(name_or_path, "profile"), name_or_path, depth);
}

}  // namespace

const std::vector<std::string>& profile_names() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> found;
    for (const auto& [file, text] : embedded_profiles()) found.push_back(catalogue_name(file));
    std::sort(found.begin(), found.end());
    return found;
  }();
  return names;
}

std::string_view profile_text(std::string_view name) {
  for (const auto& [file, text] : embedded_profiles()) {
    if (catalogue_name(file) == name) return text;
  }
  std::string allowed;
  for (const std::string& known : profile_names()) allowed += (allowed.empty() ? "" : ", ") + known;
  throw SpecError({{.field = "profile",
                    .problem = "no profile is called \"" + std::string(name) + "\"",
                    .allowed = allowed + ", or a file",
                    .nearest = nearest_name(name, profile_names())}});
}

DeviceProfile load_profile(const std::string& name_or_path) { return load(name_or_path, 0); }

DeviceProfile load_profile_text(std::string_view text, const std::string& file) {
  return load_text(text, file, 0);
}

}  // namespace herdsim
