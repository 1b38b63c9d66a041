#include "traces/timeline_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <sstream>

#include "sim/base/error.h"
#include "sim/base/rng.h"
#include "tests/traces/trace_reader.h"

namespace herdsim {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Instant at(int64_t ns) { return Instant::start() + nanoseconds(ns); }

ReadTrace written(const Timeline& timeline, PerfettoCounts* counts = nullptr) {
  std::ostringstream out;
  const PerfettoCounts c = write_timeline(timeline, out);
  if (counts != nullptr) *counts = c;
  return read_trace(out.str());
}

TEST(TimelineWriter, shows_slices_marks_and_counters_on_their_tracks_in_order) {
  Timeline timeline;
  const size_t root = timeline.add_track("weeks");
  const size_t job = timeline.add_track("job", root);
  const size_t pace = timeline.add_track("pace", root, "1/h");
  timeline.slices = {
      {.track = job, .begin = at(0), .end = at(10), .name = "running", .details = {}},
      {.track = job,
       .begin = at(10),
       .end = at(15),
       .name = "detecting",
       .details = {{"host", 3.0}, {"recovered by", std::string("spare\nhost")}}},
      {.track = job, .begin = at(15), .end = at(15), .name = "mark", .details = {}}};
  timeline.samples = {{pace, at(10), 0.0}, {pace, at(0), 7.0}};
  PerfettoCounts counts;
  const ReadTrace read = written(timeline, &counts);
  EXPECT_THAT(read.violations, IsEmpty());
  EXPECT_EQ(counts.slices, 2);
  EXPECT_EQ(counts.instants, 1);
  ASSERT_EQ(read.slices.size(), 3U);
  EXPECT_EQ(read.slices[1].name, "detecting");
  EXPECT_EQ(read.slices[1].begin_ns, 10);
  EXPECT_EQ(read.slices[1].end_ns, 15);
  EXPECT_EQ(read.slices[1].arguments.at("host"), 3);
  EXPECT_EQ(read.path(read.slices[1].track), "weeks/job");
  EXPECT_THAT(read.samples.at(pace + 1), ElementsAre(std::pair(0, 7.0), std::pair(10, 0.0)));
}

// Nested slices that begin or end at one tick, neighbours that meet: what Perfetto would pair up
// wrongly without a word. Every slice comes back as it went in.
TEST(TimelineWriter, random_nested_slices_come_back_as_they_went_in) {
  for (uint64_t seed = 1; seed <= 30; ++seed) {
    RngStream random(seed, "tests/timeline", 0);
    const auto below = [&](int64_t n) {
      return std::min(n - 1, static_cast<int64_t>(random.uniform() * static_cast<double>(n)));
    };
    Timeline timeline;
    const size_t root = timeline.add_track("root");
    std::vector<std::tuple<uint64_t, int64_t, int64_t, std::string>> expected;
    for (int t = 0; t < 3; ++t) {
      const size_t track = timeline.add_track("track " + std::to_string(t), root);
      int64_t now = below(3);
      for (int k = 0; k < 20; ++k) {
        int64_t begin = now, end = begin + 1 + below(8);
        now = end + below(2);
        // Down into one another, with a shared end or beginning now and then.
        for (int depth = 0; depth < 3 && end > begin; ++depth) {
          const std::string name = std::to_string(k) + "/" + std::to_string(depth);
          timeline.slices.push_back(
              {.track = track, .begin = at(begin), .end = at(end), .name = name, .details = {}});
          expected.emplace_back(track + 1, begin, end, name);
          const int64_t cut = below(3);
          if (cut == 0) break;
          begin += cut == 1 ? 1 : 0;
          end -= cut == 2 ? 1 : 0;
        }
      }
    }
    const ReadTrace read = written(timeline);
    EXPECT_THAT(read.violations, IsEmpty()) << seed;
    std::vector<std::tuple<uint64_t, int64_t, int64_t, std::string>> found;
    for (const ReadSlice& slice : read.slices)
      found.emplace_back(slice.track, slice.begin_ns, slice.end_ns, slice.name);
    std::sort(found.begin(), found.end());
    std::sort(expected.begin(), expected.end());
    EXPECT_EQ(found, expected) << seed;
  }
}

TEST(TimelineWriter, a_file_that_cannot_be_written_is_an_error_with_its_path) {
  Timeline timeline;
  timeline.add_track("root");
  EXPECT_THROW(write_timeline_file(timeline, "/nowhere/weeks.pftrace"), SpecError);
  const std::string path = testing::TempDir() + "herdsim_weeks.pftrace";
  const PerfettoCounts counts = write_timeline_file(timeline, path);
  EXPECT_EQ(static_cast<int64_t>(std::filesystem::file_size(path)), counts.file_bytes);
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
}

}  // namespace
}  // namespace herdsim
