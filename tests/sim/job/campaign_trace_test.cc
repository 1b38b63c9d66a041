// The timeline of a campaign covers its horizon, thinned or not.
#include "sim/job/campaign.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/sim/job/llama3_campaign.h"

namespace herdsim {
namespace {

TEST(Campaign, the_trace_covers_the_horizon_without_gaps) {
  CampaignRequest request = small_request();
  const CampaignSpec spec = resolve(request);
  CampaignTrace trace;
  const PaceOfTheSlowest model({.nominal = request.nominal_step, .data_parallel = 128});
  const RunResult traced = run_campaign(spec, model, {.trace = &trace});
  ASSERT_FALSE(trace.phases.empty());
  Instant at = Instant::start();
  for (const CampaignTrace::Phase& phase : trace.phases) {
    EXPECT_EQ(phase.begin, at);
    at = phase.end;
  }
  EXPECT_EQ(at - Instant::start(), traced.replicas[0].horizon);
  EXPECT_EQ(traced.fingerprint(), run(request).fingerprint());
}

// A job that is disturbed often, recorded in a twentieth of the room.
TEST(Campaign, a_full_trace_is_thinned_and_covers_the_horizon) {
  CampaignRequest request = small_request();
  request.run.replicas = 1;
  const CampaignSpec spec = resolve(request);
  const PaceOfTheSlowest pace({.nominal = spec.request.nominal_step});
  CampaignTrace all, few;
  run_campaign(spec, pace, {.trace = &all});
  few.most_entries = all.entries() / 20;
  run_campaign(spec, pace, {.trace = &few});
  EXPECT_EQ(all.thinning(), "");
  EXPECT_EQ(few.thinning().substr(0, 17), "thinned: of every");
  EXPECT_LE(few.entries(), few.most_entries + 1);
  EXPECT_GT(few.entries(), few.most_entries / 8);
  ASSERT_FALSE(few.phases.empty());
  EXPECT_EQ(few.phases.front().begin, Instant::start());
  EXPECT_EQ(few.phases.back().end, all.phases.back().end);
  for (size_t i = 1; i < few.phases.size(); ++i)
    EXPECT_EQ(few.phases[i].begin, few.phases[i - 1].end) << i;
  // Nothing is forgotten: shown or counted. The costliest of all is shown.
  const auto counted = [](const CampaignTrace& trace) {
    int64_t count = 0;
    for (const CampaignTrace::Incident& incident : trace.incidents) count += 1 + incident.like_it;
    return count;
  };
  EXPECT_EQ(counted(few), counted(all));
  const auto longest = [](const CampaignTrace& trace) {
    Duration most;
    for (const CampaignTrace::Incident& incident : trace.incidents)
      most = std::max(most, incident.down + incident.lost_work);
    return most;
  };
  EXPECT_EQ(longest(few), longest(all));
  int64_t saves = 0, all_saves = 0;
  for (const CampaignTrace::Saves& s : few.saves) saves += s.count;
  for (const CampaignTrace::Saves& s : all.saves) all_saves += s.count;
  EXPECT_EQ(saves, all_saves);
}

}  // namespace
}  // namespace herdsim
