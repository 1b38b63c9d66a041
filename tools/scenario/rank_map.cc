#include "tools/scenario/rank_map.h"

#include <charconv>
#include <string_view>

#include "sim/base/error.h"
#include "sim/base/read_file.h"

namespace herdsim {
namespace {

// The text from `at` on without white space and comments.
size_t skip_blank(std::string_view text, size_t at) {
  while (at < text.size()) {
    if (text[at] == '#') {
      at = std::min(text.find('\n', at), text.size());
    } else if (std::string_view(" \t\r\n,").find(text[at]) != std::string_view::npos) {
      ++at;
    } else {
      break;
    }
  }
  return at;
}

}  // namespace

void read_rank_map(const std::string& file, const std::string& path, ClusterSpec& cluster,
                   SpecReport* report) {
  if (cluster.placement != PlacementKind::kRankMap) {
    if (!file.empty()) {
      report->add(path, "is not read unless placement is RANK_MAP", "placement: RANK_MAP");
    }
    return;
  }
  if (file.empty()) return report->add(path, "is missing: placement is RANK_MAP", "a file");
  std::string text;
  try {
    text = read_file(file);
  } catch (const SpecError& error) {
    return report->add(path, "\"" + file + "\" " + error.faults().front().problem, "a file of whole numbers");
  }
  const char* const end = text.data() + text.size();
  for (size_t at = skip_blank(text, 0); at < text.size(); at = skip_blank(text, at)) {
    int64_t gpu = 0;
    const auto [next, error] = std::from_chars(text.data() + at, end, gpu);
    if (error != std::errc()) {
      return report->add(path,
                         "the GPU of rank " + std::to_string(cluster.rank_map.size()) + " in \"" +
                             file + "\" is no whole number",
                         "one GPU a rank");
    }
    cluster.rank_map.push_back(gpu);
    at = static_cast<size_t>(next - text.data());
  }
}

}  // namespace herdsim
