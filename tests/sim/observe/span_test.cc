#include "sim/observe/span.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <limits>

namespace herdsim {
namespace {

using ::testing::HasSubstr;

Span span(size_t rank, Stream stream, int64_t begin, int64_t end, uint64_t flow = 0) {
  return {.rank = RankId(rank),
          .stream = stream,
          .begin = Instant::from_nanoseconds(begin),
          .end = Instant::from_nanoseconds(end),
          .flow = flow};
}

StepTrace two_ranks() {
  StepTrace trace;
  trace.names = {"forward"};
  trace.ranks = {{.rank = RankId(3)}, {.rank = RankId(5)}};
  trace.spans = {span(3, Stream::kCompute, 0, 10), span(3, Stream::kCompute, 10, 20),
                 span(3, Stream::kSendForward, 20, 30, 1), span(5, Stream::kReceive, 25, 40, 1)};
  trace.counters = {{.rank = RankId(5),
                     .name = "memory",
                     .unit = "GB",
                     .samples = {{Instant::start(), 1}, {Instant::from_nanoseconds(5), 2}}}};
  return trace;
}

TEST(StepTrace, a_trace_that_keeps_its_promises_has_no_fault) {
  EXPECT_EQ(first_fault(two_ranks()), "");
  EXPECT_EQ(first_fault(StepTrace{}), "");
}

TEST(StepTrace, each_broken_promise_is_named) {
  struct Case {
    const char* expected;
    std::function<void(StepTrace&)> breaks;
  };
  const std::vector<Case> cases = {
      {"rank 3 follows rank 5", [](StepTrace& t) { std::swap(t.ranks[0], t.ranks[1]); }},
      {"no stream", [](StepTrace& t) { t.spans[0].stream = static_cast<Stream>(kStreams); }},
      {"has no place", [](StepTrace& t) { t.ranks.pop_back(); }},
      {"not in the table", [](StepTrace& t) { t.spans[1].name = 1; }},
      {"begins before the step",
       [](StepTrace& t) { t.spans[0].begin = Instant::from_nanoseconds(-1); }},
      {"ends before it begins",
       [](StepTrace& t) { t.spans[0].begin = Instant::from_nanoseconds(11); }},
      {"never ends", [](StepTrace& t) { t.spans[3].end = Instant::never(); }},
      {"overlaps", [](StepTrace& t) { t.spans[0].end = Instant::from_nanoseconds(11); }},
      {"out of order", [](StepTrace& t) { std::swap(t.spans[1], t.spans[2]); }},
      {"counter memory",
       [](StepTrace& t) { t.counters[0].samples[0].at = Instant::from_nanoseconds(6); }},
      {"not finite",
       [](StepTrace& t) {
         t.counters[0].samples[1].value = std::numeric_limits<double>::infinity();
       }},
      {"rank 9 has no place", [](StepTrace& t) { t.counters[0].rank = RankId(9); }},
      {"neither sends nor receives", [](StepTrace& t) { t.spans[0].flow = 1; }},
      {"before it is sent",
       [](StepTrace& t) {
         t.spans[3].begin = Instant::from_nanoseconds(1);
         t.spans[3].end = Instant::from_nanoseconds(19);
       }},
      {"two receives",
       [](StepTrace& t) { t.spans.push_back(span(5, Stream::kReceive, 40, 50, 1)); }},
  };
  for (const Case& c : cases) {
    StepTrace trace = two_ranks();
    c.breaks(trace);
    EXPECT_THAT(first_fault(trace), HasSubstr(c.expected));
  }
}

}  // namespace
}  // namespace herdsim
