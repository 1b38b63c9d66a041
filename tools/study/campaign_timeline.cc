#include "tools/study/campaign_timeline.h"

#include <fmt/format.h>

#include <map>

namespace herdsim {
namespace {

void add_incidents(const CampaignTrace& trace, int64_t gpus_per_host, size_t root,
                   Timeline& timeline) {
  const size_t failures = timeline.add_track("failures", root);
  std::map<std::string, size_t> tracks;
  for (const CampaignTrace::Incident& incident : trace.incidents) {
    const auto [place, added] = tracks.try_emplace(incident.what, 0);
    if (added) place->second = timeline.add_track(incident.what, failures);
    // What was down already when it failed comes back together with the others, so slices nest.
    Timeline::Slice slice{.track = place->second,
                          .begin = incident.at,
                          .end = incident.at + incident.down,
                          .name = incident.what,
                          .details = {{"host", static_cast<double>(incident.gpu / gpus_per_host)},
                                      {"hosts lost", static_cast<double>(incident.hosts)}}};
    if (incident.like_it > 0)
      slice.details.emplace_back("others not shown", static_cast<double>(incident.like_it));
    if (incident.stops) {
      slice.details.emplace_back("down s", incident.down.seconds());
      slice.details.emplace_back("lost work s", incident.lost_work.seconds());
      slice.details.emplace_back("recovered by", incident.recovered_by);
    }
    timeline.slices.push_back(std::move(slice));
  }
}

}  // namespace

Timeline campaign_timeline(const CampaignTrace& trace, const std::string& title,
                           int64_t gpus_per_host) {
  Timeline timeline;
  const std::string thinning = trace.thinning();
  const size_t root = timeline.add_track(thinning.empty() ? title : title + "; " + thinning);
  const size_t job = timeline.add_track("job", root);
  const size_t effective = timeline.add_track("effective training time so far", root, "%");
  const size_t pace = timeline.add_track("steps an hour", root, "1/h");
  const size_t saves = timeline.add_track("saves to the remote store", root);
  for (const CampaignTrace::Phase& phase : trace.phases) {
    const std::string_view name = kJobStateNames[static_cast<size_t>(phase.state)];
    timeline.slices.push_back(
        {.track = job,
         .begin = phase.begin,
         .end = phase.end,
         .name = phase.planned ? fmt::format("planned: {}", name) : std::string(name),
         .details = {}});
  }
  for (const CampaignTrace::Pace& p : trace.pace) {
    timeline.samples.push_back({effective, p.at, 100 * p.effective});
    timeline.samples.push_back({pace, p.at, p.steps_per_hour});
  }
  for (const CampaignTrace::Saves& s : trace.saves) {
    timeline.slices.push_back({.track = saves,
                               .begin = s.begin,
                               .end = s.end,
                               .name = fmt::format("a save every {} steps", s.every_steps),
                               .details = {{"saves", static_cast<double>(s.count)}}});
  }
  add_incidents(trace, gpus_per_host, root, timeline);
  const size_t hosts = timeline.add_track("hosts", root);
  const size_t spare = timeline.add_track("standing by", hosts, "hosts");
  const size_t repair = timeline.add_track("in repair", hosts, "hosts");
  const size_t missing = timeline.add_track("missing", hosts, "hosts");
  for (const CampaignTrace::Hosts& h : trace.hosts) {
    timeline.samples.push_back({spare, h.at, static_cast<double>(h.spare)});
    timeline.samples.push_back({repair, h.at, static_cast<double>(h.in_repair)});
    timeline.samples.push_back({missing, h.at, static_cast<double>(h.missing)});
  }
  return timeline;
}

}  // namespace herdsim
