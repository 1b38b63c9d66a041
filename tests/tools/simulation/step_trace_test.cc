// The trace of a step against the step's own account, folded against unfolded.
#include "tools/simulation/step_trace.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

#include "tests/sim/executor/job_cases.h"
#include "tools/simulation/simulate_step.h"

namespace herdsim {
namespace {

std::vector<RankId> every_rank(const Scenario& scenario) {
  std::vector<RankId> ranks;
  for (int64_t r = 0; r < scenario.gpus; ++r) ranks.emplace_back(static_cast<size_t>(r));
  return ranks;
}

StepSimulation traced(const Scenario& scenario, bool fold = true) {
  return simulate_step(scenario, {.fold = fold, .traced_ranks = every_rank(scenario)});
}

TEST(StepTrace, keeps_every_promise_of_a_trace) {
  for (const JobCase& c : job_cases()) {
    EXPECT_EQ(first_fault(traced(c.scenario()).trace), "") << c.name;
  }
}

TEST(StepTrace, compute_spans_fill_the_compute_terms_of_the_account) {
  for (const JobCase& c : job_cases()) {
    const StepSimulation step = traced(c.scenario());
    int64_t spans = 0;
    for (const Span& span : step.trace.spans) {
      if (span.stream == Stream::kCompute) spans += (span.end - span.begin).nanoseconds();
    }
    const auto booked = [&](TimeTerm term) {
      return step.result.account_rank_nanoseconds[static_cast<size_t>(term)];
    };
    // Straggler and other also hold waiting, so they bound the rest from above.
    const int64_t kernels =
        booked(TimeTerm::kCompute) + booked(TimeTerm::kMemoryBound) + booked(TimeTerm::kOptimizer);
    EXPECT_GE(spans, kernels) << c.name;
    EXPECT_LE(spans, kernels + booked(TimeTerm::kStraggler) + booked(TimeTerm::kOther)) << c.name;
  }
}

TEST(StepTrace, every_message_has_one_send_and_one_receive) {
  for (const JobCase& c : job_cases()) {
    std::map<uint64_t, std::pair<const Span*, const Span*>> flows;
    const StepTrace trace = traced(c.scenario()).trace;
    size_t messages = 0;
    for (const Span& span : trace.spans) {
      const bool sends =
          span.stream == Stream::kSendForward || span.stream == Stream::kSendBackward;
      if (!sends && span.stream != Stream::kReceive) {
        EXPECT_EQ(span.flow, 0u) << c.name;
        continue;
      }
      ASSERT_NE(span.flow, 0u) << c.name;
      auto& [send, receive] = flows[span.flow];
      const Span*& end = sends ? send : receive;
      ASSERT_EQ(end, nullptr) << c.name;
      end = &span;
      ++messages;
    }
    EXPECT_EQ(2 * flows.size(), messages) << c.name;
    for (const auto& [flow, ends] : flows) {
      ASSERT_TRUE(ends.first != nullptr && ends.second != nullptr) << c.name;
      EXPECT_EQ(ends.first->end, ends.second->end) << c.name;
      EXPECT_EQ(ends.first->bytes, ends.second->bytes) << c.name;
      EXPECT_EQ(ends.first->micro_batch, ends.second->micro_batch) << c.name;
    }
  }
}

std::string line(const StepTrace& trace, const Span& s) {
  return std::to_string(s.rank.index()) + " " + std::to_string(static_cast<int>(s.stream)) + " " +
         std::to_string(s.begin.nanoseconds()) + " " + std::to_string(s.end.nanoseconds()) + " " +
         trace.names[s.name] + " " + std::to_string(s.micro_batch) + " " + std::to_string(s.chunk) +
         " " + std::to_string(s.bytes.count()) + " " + std::to_string(s.flops.count()) + " " +
         std::to_string(s.flow);
}

TEST(StepTrace, of_a_folded_rank_is_that_of_the_rank_itself) {
  for (const JobCase& c : job_cases()) {
    const Scenario scenario = c.scenario();
    const StepTrace folded = traced(scenario).trace;
    const StepTrace whole = traced(scenario, false).trace;
    ASSERT_EQ(folded.spans.size(), whole.spans.size()) << c.name;
    for (size_t i = 0; i < folded.spans.size(); ++i) {
      ASSERT_EQ(line(folded, folded.spans[i]), line(whole, whole.spans[i])) << c.name;
    }
  }
}

TEST(StepTrace, spans_and_flows_of_a_sample_agree_with_those_of_the_whole) {
  const Scenario scenario = job_cases()[1].scenario();
  const std::vector<RankId> sample = sampled_ranks(scenario);
  EXPECT_TRUE(std::is_sorted(sample.begin(), sample.end()));
  EXPECT_TRUE(std::binary_search(sample.begin(), sample.end(), RankId(5)))
      << "the slow GPU is worth looking at";
  EXPECT_EQ(first_fault(simulate_step(scenario, {.traced_ranks = sample}).trace), "");
}

// Rates times how long they hold are the bytes that the most used link of the tier carried.
TEST(LinkCounters, add_up_to_what_their_link_carried) {
  size_t seen = 0;
  for (const JobCase& c : job_cases()) {
    const StepSimulation step = traced(c.scenario());
    for (const Counter& counter : step.trace.counters) {
      double gigabytes = 0;
      for (size_t i = 0; i + 1 < counter.samples.size(); ++i) {
        gigabytes += counter.samples[i].value *
                     (counter.samples[i + 1].at - counter.samples[i].at).seconds();
      }
      const auto most = std::find_if(
          step.result.links.begin(), step.result.links.end(),
          [&](const LinkUse& link) { return counter.name.starts_with(link.tier + ":"); });
      if (most == step.result.links.end()) continue;  // beyond those that are listed
      // Transfers of other jobs are nobody's who is traced.
      double carried = 0;
      for (const LinkUse::Load& load : most->loads) {
        if (load.transfer != "other jobs")
          carried += static_cast<double>(load.carried.count()) * 1e-9;
      }
      EXPECT_NEAR(gigabytes, carried, 1e-6 * carried + 1e-9) << c.name << ", " << counter.name;
      EXPECT_NEAR(counter.samples.back().value, 0, 1e-6) << c.name;
      ++seen;
    }
  }
  EXPECT_GT(seen, 20U);
}

}  // namespace
}  // namespace herdsim
