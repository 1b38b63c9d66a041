#include "traces/perfetto_writer.h"

#include <gmock/gmock.h>
#include <google/protobuf/text_format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <tuple>

#include "sim/base/error.h"
#include "tests/golden/golden_file.h"
#include "tests/traces/synthetic_trace.h"
#include "tests/traces/trace_reader.h"

namespace herdsim {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::string written(const StepTrace& trace, const PerfettoOptions& options,
                    PerfettoCounts* counts = nullptr) {
  std::ostringstream out;
  const PerfettoCounts c = write_perfetto(trace, out, options);
  if (counts != nullptr) *counts = c;
  return out.str();
}

void expect_sound(const StepTrace& trace, const PerfettoOptions& options, const std::string& what) {
  ASSERT_EQ(first_fault(trace), "") << what;
  PerfettoCounts counts;
  const std::string bytes = written(trace, options, &counts);
  const ReadTrace read = read_trace(bytes);
  EXPECT_THAT(read.violations, IsEmpty()) << what;
  EXPECT_EQ(read.packets, counts.packets) << what;
  EXPECT_EQ(static_cast<int64_t>(read.tracks.size()), counts.tracks) << what;
  EXPECT_EQ(read.slice_count(), counts.slices) << what;
  EXPECT_EQ(read.instant_count(), counts.instants) << what;
  EXPECT_EQ(read.sample_count(), counts.samples) << what;
  EXPECT_EQ(static_cast<int64_t>(read.arrows.size()), counts.flows) << what;
  EXPECT_EQ(static_cast<int64_t>(bytes.size()), counts.file_bytes) << what;
  if (!options.compress) {
    EXPECT_EQ(counts.raw_bytes, counts.file_bytes) << what;
  }
}

const std::vector<PerfettoOptions>& all_options() {
  static const std::vector<PerfettoOptions> options = {{},
                                                       {.compress = false},
                                                       {.compress = false, .annotations = false},
                                                       {.phases = false},
                                                       {.max_flows = 3}};
  return options;
}

TraceOverlay overlay_of(const StepTrace& trace) {
  TraceOverlay overlay;
  overlay.names = {"compute", "tp: all_gather"};
  Instant at;
  for (int i = 0; i < 20; ++i) {
    const Instant end = at + nanoseconds(300);
    overlay.critical_path.push_back({.rank = RankId(static_cast<size_t>(i % 3)),
                                     .begin = at,
                                     .end = end,
                                     .name = static_cast<uint32_t>(i % 2),
                                     .micro_batch = i});
    at = end;
  }
  // From every receive to the first kernel of its rank that begins when it has ended.
  for (size_t i = 0; i < trace.spans.size(); ++i) {
    for (size_t j = 0; j < trace.spans.size(); ++j) {
      const Span &from = trace.spans[i], &to = trace.spans[j];
      if (from.stream != Stream::kReceive || to.stream != Stream::kCompute) continue;
      if (from.rank != to.rank || from.end > to.begin) continue;
      overlay.waits.push_back(
          {static_cast<uint32_t>(i), static_cast<uint32_t>(j), to.begin - from.end});
      break;
    }
  }
  overlay.notes = {"2 of 4 ranks", "a note\nof two lines"};
  return overlay;
}

TEST(PerfettoWriter, notes_are_marks_where_the_step_begins) {
  const StepTrace trace = pipeline_trace(4, 6);
  const TraceOverlay overlay = overlay_of(trace);
  std::vector<std::string> notes;
  for (const ReadSlice& slice : read_trace(written(trace, {.overlay = &overlay})).slices) {
    if (slice.track != 1) continue;
    EXPECT_EQ(slice.begin_ns, 0);
    EXPECT_EQ(slice.end_ns, 0);
    notes.push_back(slice.name);
  }
  EXPECT_THAT(notes, ElementsAre("2 of 4 ranks", "a note\\x0aof two lines"));
}

TEST(PerfettoWriter, the_critical_path_has_a_row_below_the_cluster_and_waits_have_arrows) {
  const StepTrace trace = pipeline_trace(4, 6);
  const TraceOverlay overlay = overlay_of(trace);
  ASSERT_FALSE(overlay.waits.empty());
  PerfettoCounts without, with;
  written(trace, {}, &without);
  const std::string bytes = written(trace, {.overlay = &overlay}, &with);
  expect_sound(trace, {.overlay = &overlay}, "overlay");
  expect_sound(trace, {.annotations = false, .max_flows = 4, .overlay = &overlay}, "few arrows");
  EXPECT_EQ(with.slices, without.slices + 20);
  EXPECT_EQ(with.flows, without.flows + static_cast<int64_t>(overlay.waits.size()));
  const ReadTrace read = read_trace(bytes);
  int64_t on_path = 0;
  for (const ReadSlice& slice : read.slices) {
    if (slice.category != "critical path") continue;
    EXPECT_EQ(read.path(slice.track), "cluster: pipeline/critical path");
    EXPECT_EQ(slice.end_ns - slice.begin_ns, 300);
    EXPECT_EQ(slice.arguments.at("micro_batch"), static_cast<double>(on_path));
    ++on_path;
  }
  EXPECT_EQ(on_path, 20);
}

TEST(PerfettoWriter, what_goes_to_the_store_has_a_row_a_name_below_the_cluster) {
  StepTrace trace = pipeline_trace(2, 3);
  const auto at = [](int64_t ns) { return Instant::start() + nanoseconds(ns); };
  trace.of_cluster = {{"save", at(100), at(900), gigabytes(64)},
                      {"read", at(200), at(400), gigabytes(3)},
                      {"save", at(900), at(1000), gigabytes(1)}};
  for (const PerfettoOptions& options : all_options()) expect_sound(trace, options, "storage");
  std::vector<std::string> rows;
  for (const ReadTrace read = read_trace(written(trace, {}));
       const ReadSlice& slice : read.slices) {
    const std::string row = read.path(slice.track);
    if (row.find("storage: ") == std::string::npos) continue;
    rows.push_back(row);
    if (slice.begin_ns != 100) continue;
    EXPECT_EQ(slice.name, "save");
    EXPECT_EQ(slice.end_ns, 900);
    EXPECT_EQ(slice.arguments.at("bytes"), 64e9);
  }
  EXPECT_THAT(rows, testing::UnorderedElementsAre("cluster: pipeline/storage: save",
                                                  "cluster: pipeline/storage: read",
                                                  "cluster: pipeline/storage: save"));
  trace.of_cluster[2].begin = at(899);
  EXPECT_NE(first_fault(trace), "");
}

TEST(PerfettoWriter, what_it_writes_is_sound_for_random_traces) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    for (size_t i = 0; i < all_options().size(); ++i) {
      expect_sound(random_trace(seed, 1 + static_cast<int>(seed % 7), 40), all_options()[i],
                   "seed " + std::to_string(seed) + ", options " + std::to_string(i));
    }
  }
}

TEST(PerfettoWriter, what_it_writes_is_sound_for_pipelines_and_for_nothing) {
  for (const PerfettoOptions& options : all_options()) {
    expect_sound(pipeline_trace(1, 1), options, "one rank");
    expect_sound(pipeline_trace(40, 8), options, "40 stages");
    expect_sound(StepTrace{}, options, "empty");
  }
}

TEST(PerfettoWriter, every_span_is_read_back_with_its_time_row_name_and_arguments) {
  const StepTrace trace = random_trace(99, 5, 60);
  const ReadTrace read = read_trace(written(trace, {.phases = false}));
  std::vector<std::tuple<std::string, int64_t, int64_t, std::string>> expected, actual;
  double expected_bytes = 0, actual_bytes = 0, expected_flops = 0, actual_flops = 0;
  for (const Span& span : trace.spans) {
    expected.emplace_back(kStreamNames[static_cast<size_t>(span.stream)], span.begin.nanoseconds(),
                          span.end.nanoseconds(), trace.names[span.name]);
    expected_bytes += static_cast<double>(span.bytes.count());
    expected_flops += span.flops.count();
  }
  for (const ReadSlice& slice : read.slices) {
    if (slice.name == "sent" || slice.name == "arrived") continue;
    EXPECT_EQ(read.tracks.at(slice.track).name(), slice.category);
    actual.emplace_back(slice.category, slice.begin_ns, slice.end_ns, slice.name);
    if (slice.arguments.count("bytes") != 0) actual_bytes += slice.arguments.at("bytes");
    if (slice.arguments.count("flops") != 0) actual_flops += slice.arguments.at("flops");
  }
  EXPECT_THAT(actual, ::testing::UnorderedElementsAreArray(expected));
  EXPECT_NEAR(actual_bytes, expected_bytes, 1e-12 * expected_bytes);
  EXPECT_NEAR(actual_flops, expected_flops, 1e-12 * expected_flops);
}

TEST(PerfettoWriter, slices_of_one_row_never_overlap) {
  const ReadTrace read = read_trace(written(random_trace(7, 6, 80), {}));
  for (size_t i = 1; i < read.slices.size(); ++i) {
    const ReadSlice &a = read.slices[i - 1], &b = read.slices[i];
    if (a.track == b.track) {
      EXPECT_LE(a.end_ns, b.begin_ns) << read.path(a.track);
    }
  }
}

TEST(PerfettoWriter, rows_are_a_tree_of_padded_names_in_explicit_order) {
  StepTrace trace;
  trace.title = "tree";
  trace.names = {"forward"};
  for (const size_t rank : {2u, 10u, 11u}) {
    trace.ranks.push_back(
        {.rank = RankId(rank), .pod = 0, .host = rank == 2 ? 9 : 12, .gpu_in_host = 0});
    trace.spans.push_back({.rank = RankId(rank), .end = Instant::from_nanoseconds(5)});
  }
  trace.counters = {{.rank = RankId(2), .name = "memory", .unit = "GB"}};
  const ReadTrace read = read_trace(written(trace, {}));
  std::vector<std::string> paths;
  for (const auto& [uuid, track] : read.tracks) paths.push_back(read.path(uuid));
  EXPECT_THAT(paths,
              ::testing::IsSupersetOf(
                  {"cluster: tree/pod 0/node 09/rank 02 gpu 0 (tp 0 cp 0 pp 0 dp 0)/compute",
                   "cluster: tree/pod 0/node 09/rank 02 gpu 0 (tp 0 cp 0 pp 0 dp 0)/memory",
                   "cluster: tree/pod 0/node 12/rank 10 gpu 0 (tp 0 cp 0 pp 0 dp 0)/compute",
                   "cluster: tree/pod 0/node 12/rank 11 gpu 0 (tp 0 cp 0 pp 0 dp 0)/compute"}));
  EXPECT_THAT(read.violations, IsEmpty());
}

TEST(PerfettoWriter, counters_carry_their_unit_and_share_a_scale_with_their_namesakes) {
  const ReadTrace read = read_trace(written(pipeline_trace(3, 2), {}));
  int memories = 0;
  for (const auto& [uuid, track] : read.tracks) {
    if (track.name() != "memory") continue;
    ++memories;
    EXPECT_EQ(track.counter().unit_name(), "GB");
    EXPECT_EQ(track.counter().y_axis_share_key(), "memory GB");
    EXPECT_THAT(read.samples.at(uuid), ElementsAre(std::pair(0, 10.0), ::testing::_, ::testing::_));
  }
  EXPECT_EQ(memories, 3);
}

// One send of 100..200 and a receive placed against it.
ReadTrace arrow_of(int64_t receive_begin, int64_t receive_end) {
  StepTrace trace;
  trace.names = {"p2p"};
  trace.ranks = {{.rank = RankId(0)}, {.rank = RankId(1), .gpu_in_host = 1}};
  trace.spans = {{.rank = RankId(0),
                  .stream = Stream::kSendForward,
                  .begin = Instant::from_nanoseconds(100),
                  .end = Instant::from_nanoseconds(200),
                  .flow = 5},
                 {.rank = RankId(1),
                  .stream = Stream::kReceive,
                  .begin = Instant::from_nanoseconds(receive_begin),
                  .end = Instant::from_nanoseconds(receive_end),
                  .flow = 5}};
  return read_trace(written(trace, {}));
}

TEST(PerfettoWriter, arrows_join_the_latest_anchors_that_do_not_run_backwards) {
  struct Case {
    int64_t begin, end, from, to, instants;
  };
  for (const Case& c :
       {Case{250, 300, 200, 250, 0}, Case{200, 300, 200, 200, 0}, Case{150, 300, 200, 300, 1},
        Case{100, 200, 200, 200, 1}, Case{50, 150, 100, 150, 2}, Case{50, 100, 100, 100, 2},
        Case{150, 150, 100, 150, 3}}) {
    const ReadTrace read = arrow_of(c.begin, c.end);
    EXPECT_THAT(read.violations, IsEmpty()) << c.begin;
    ASSERT_EQ(read.arrows.size(), 1u) << c.begin;
    EXPECT_EQ(read.arrows[0].from_ns, c.from) << c.begin;
    EXPECT_EQ(read.arrows[0].to_ns, c.to) << c.begin;
    EXPECT_EQ(read.instant_count(), c.instants) << c.begin;
  }
}

TEST(PerfettoWriter, flows_beyond_the_limit_or_to_untraced_ranks_are_left_out) {
  StepTrace trace = pipeline_trace(5, 4);
  PerfettoCounts counts;
  written(trace, {.max_flows = 3}, &counts);
  EXPECT_EQ(counts.flows, 3);
  EXPECT_EQ(counts.flows_left_out, 4 * 4 - 3);
  std::erase_if(trace.spans, [](const Span& s) { return s.rank == RankId(4); });
  written(trace, {}, &counts);
  EXPECT_EQ(counts.flows, 3 * 4);
  EXPECT_EQ(counts.flows_left_out, 0);
}

// Names of the slices on the row of rank 0.
std::vector<std::string> phases_of_first(const StepTrace& trace) {
  const ReadTrace read = read_trace(written(trace, {}));
  EXPECT_THAT(read.violations, IsEmpty());
  std::vector<std::string> names;
  for (const ReadSlice& slice : read.slices) {
    const bool is_first = read.path(slice.track).find("rank 0 ") != std::string::npos;
    if (slice.category == "phase" && is_first) names.push_back(slice.name);
  }
  return names;
}

TEST(PerfettoWriter, phases_merge_the_kernels_of_one_pass_on_the_ranks_row) {
  EXPECT_THAT(phases_of_first(pipeline_trace(2, 2)),
              ElementsAre("forward 0", "backward 0", "forward 1", "backward 1", "optimizer"));
}

TEST(PerfettoWriter, phases_of_unknown_kind_are_named_by_micro_batch_or_kernel) {
  StepTrace trace = pipeline_trace(2, 2);
  for (Span& span : trace.spans) {
    span.phase = StepPhase::kUnknown;
    if (span.micro_batch == 1) span.chunk = 3;
  }
  EXPECT_THAT(phases_of_first(trace),
              ElementsAre("micro-batch 0", "micro-batch 1 chunk 3", "optimizer adam"));
}

TEST(PerfettoWriter, control_characters_in_names_are_escaped_everywhere) {
  StepTrace trace = pipeline_trace(2, 1);
  trace.title = "a\nb";
  for (std::string& name : trace.names) name += "\x01\xff";
  trace.counters[0].name = "mem\tory";
  trace.counters[0].unit = "G\rB";
  std::vector<std::string> violations;
  const auto packets = unpacked(written(trace, {}), violations);
  EXPECT_THAT(violations, IsEmpty());
  std::string text;
  google::protobuf::TextFormat::PrintToString(packets, &text);
  EXPECT_THAT(text, HasSubstr(R"(cluster: a\\x0ab)"));
  EXPECT_THAT(text, HasSubstr(R"(forward attention\\x01\\xff)"));
  EXPECT_THAT(text, HasSubstr(R"(mem\\x09ory)"));
  EXPECT_THAT(text, HasSubstr(R"(G\\x0dB)"));
}

TEST(PerfettoWriter, compression_changes_the_packing_and_nothing_else) {
  const StepTrace trace = pipeline_trace(64, 60);
  PerfettoCounts plain, packed;
  std::vector<std::string> violations;
  const auto a = unpacked(written(trace, {.compress = false}, &plain), violations);
  const auto b = unpacked(written(trace, {.compress = true}, &packed), violations);
  EXPECT_THAT(violations, IsEmpty());
  EXPECT_EQ(a.SerializeAsString(), b.SerializeAsString());
  EXPECT_EQ(plain.raw_bytes, packed.raw_bytes);
  EXPECT_GT(packed.raw_bytes, 2 * (448 << 10)) << "the trace must take more than one batch";
  EXPECT_LT(4 * packed.file_bytes, packed.raw_bytes);
}

TEST(PerfettoWriter, the_same_trace_gives_the_same_bytes) {
  EXPECT_EQ(written(random_trace(3, 4, 50), {}), written(random_trace(3, 4, 50), {}));
}

TEST(PerfettoWriter, the_estimate_is_near_the_file) {
  for (const StepTrace& trace :
       {pipeline_trace(8, 32), pipeline_trace(64, 60), random_trace(5, 16, 300)}) {
    for (const PerfettoOptions& options : all_options()) {
      PerfettoCounts counts;
      written(trace, options, &counts);
      const auto estimate = static_cast<double>(estimated_trace_bytes(trace, options));
      const auto actual = static_cast<double>(counts.file_bytes);
      // Random bytes and times deflate badly; steps repeat themselves.
      const double factor = !options.compress ? 1.1 : trace.title == "random" ? 4 : 2;
      EXPECT_LT(estimate, factor * actual) << trace.title << trace.ranks.size() << options.compress;
      EXPECT_GT(estimate, actual / factor) << trace.title << trace.ranks.size() << options.compress;
    }
  }
}

TEST(PerfettoWriter, a_tiny_trace_decodes_to_the_golden_text) {
  std::vector<std::string> violations;
  const auto packets = unpacked(written(pipeline_trace(2, 1), {.compress = false}), violations);
  std::string text;
  google::protobuf::TextFormat::PrintToString(packets, &text);
  EXPECT_TRUE(matches_golden("tiny_trace.txt", text));
}

TEST(PerfettoFile, a_file_appears_whole_and_replaces_the_old_one) {
  const auto folder = std::filesystem::temp_directory_path() / "herdsim_perfetto_file_test";
  std::filesystem::create_directories(folder);
  const std::string path = folder / "step.pftrace";
  std::ofstream(path) << "old";
  const PerfettoCounts counts = write_perfetto_file(pipeline_trace(4, 4), path);
  EXPECT_EQ(static_cast<int64_t>(std::filesystem::file_size(path)), counts.file_bytes);
  EXPECT_EQ(read_trace(file_text(path)).slice_count(), counts.slices);
  EXPECT_FALSE(std::filesystem::exists(path + ".partial"));
  std::filesystem::remove_all(folder);
}

// Each with the reason a user must see.
TEST(PerfettoFile, a_place_that_takes_no_trace_is_an_error_with_its_path) {
  for (const auto& [path, reason] : std::vector<std::pair<std::string, std::string>>{
           {"/dev/full", "No space left"},
           {"/nonexistent/step.pftrace", "No such file"},
           {"/proc/step.pftrace", "/proc/step.pftrace"},
           {std::filesystem::temp_directory_path(), "is a directory"}}) {
    try {
      write_perfetto_file(pipeline_trace(2, 2), path);
      ADD_FAILURE() << path;
    } catch (const SpecError& error) {
      EXPECT_THAT(error.what(), HasSubstr(path));
      EXPECT_THAT(error.what(), HasSubstr(reason));
    }
  }
}

// Takes a limited number of bytes, as a disk that fills up does.
class LimitedBuffer : public std::streambuf {
 public:
  explicit LimitedBuffer(std::streamsize room) : room_(room) {}

 protected:
  std::streamsize xsputn(const char*, std::streamsize count) override {
    const std::streamsize taken = std::min(count, room_);
    room_ -= taken;
    return taken;
  }
  int overflow(int) override { return traits_type::eof(); }

 private:
  std::streamsize room_;
};

TEST(PerfettoWriter, a_stream_that_fills_up_is_an_error_wherever_it_happens) {
  const StepTrace trace = pipeline_trace(64, 60);
  for (const bool compress : {false, true}) {
    PerfettoCounts counts;
    written(trace, {.compress = compress}, &counts);
    for (const int64_t room : {int64_t{0}, counts.file_bytes / 2, counts.file_bytes - 1}) {
      LimitedBuffer buffer(room);
      std::ostream out(&buffer);
      EXPECT_THROW(write_perfetto(trace, out, {.compress = compress}, "step.pftrace"), SpecError)
          << room;
    }
  }
}

TEST(PerfettoWriterDeathTest, a_trace_that_breaks_its_promises_is_a_program_error) {
  StepTrace trace = pipeline_trace(2, 1);
  trace.spans[1].begin = Instant::start();
  std::ostringstream out;
  EXPECT_DEATH(write_perfetto(trace, out), "overlaps");
}

}  // namespace
}  // namespace herdsim
