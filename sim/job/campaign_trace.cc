#include "sim/job/campaign_trace.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

#include "sim/base/text.h"

namespace herdsim {
namespace {

constexpr Duration kFirstGrain = seconds(60), kLastGrain = days(40'000);

// Of every grain one entry: `merge` adds an entry to the one before it.
void merge_by_grain(auto& entries, auto&& grain_of, auto&& merge) {
  size_t kept = 0;
  for (size_t i = 0; i < entries.size(); ++i) {
    if (kept > 0 && grain_of(entries[kept - 1]) == grain_of(entries[i])) {
      merge(entries[kept - 1], entries[i]);
    } else {
      if (kept != i) entries[kept] = std::move(entries[i]);
      ++kept;
    }
  }
  entries.erase(entries.begin() + static_cast<ptrdiff_t>(kept), entries.end());
}

Duration cost_of(const CampaignTrace::Incident& incident) {
  return incident.down + incident.lost_work;
}

}  // namespace

void CampaignTrace::thin() {
  const auto grain_of = [this](Instant at) {
    return at.since_start().nanoseconds() / grain.nanoseconds();
  };
  const auto at_of = [&](const auto& entry) { return grain_of(entry.at); };
  const auto begin_of = [&](const auto& entry) { return grain_of(entry.begin); };
  const auto last = [](auto& kept, auto& entry) { kept = entry; };
  merge_by_grain(pace, at_of, last);
  merge_by_grain(hosts, at_of, last);
  merge_by_grain(saves, begin_of, [](Saves& kept, const Saves& entry) {
    kept.end = entry.end;
    kept.count += entry.count;
    kept.every_steps = entry.every_steps;
  });
  merge_by_grain(phases, begin_of, [](Phase& kept, const Phase& entry) {
    if (entry.end - entry.begin > kept.end - kept.begin) {
      kept.state = entry.state;
      kept.planned = entry.planned;
    }
    kept.end = entry.end;
  });
  // What one that is open will have cost is not known: the first of them has been down for longest.
  std::map<std::tuple<int64_t, std::string, bool>, size_t> costliest;
  std::vector<Incident> shown;
  for (Incident& incident : incidents) {
    const auto [place, added] = costliest.try_emplace(
        {grain_of(incident.at), incident.what, incident.is_open}, shown.size());
    if (added) {
      shown.push_back(std::move(incident));
      continue;
    }
    Incident& kept = shown[place->second];
    const int64_t both = kept.like_it + incident.like_it + 1;
    if (!kept.is_open && cost_of(incident) > cost_of(kept)) kept = std::move(incident);
    kept.like_it = both;
  }
  incidents = std::move(shown);
}

bool CampaignTrace::make_room() {
  if (entries() < most_entries) return false;
  if (grain == Duration::zero()) grain = kFirstGrain;
  // What came since the last time, first; coarser where that is not enough.
  for (thin(); entries() > most_entries / 2 && grain < kLastGrain; thin()) grain = grain * 2;
  return true;
}

std::string CampaignTrace::thinning() const {
  if (grain == Duration::zero()) return "";
  return fmt::format(
      "thinned: of every {} one phase, one sample of a counter and the costliest failure "
      "of a class",
      to_text(grain));
}

}  // namespace herdsim
