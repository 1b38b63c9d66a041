// Stretches that are known again at a glance are those that a look at each op finds.
#include "sim/executor/local_order.h"

#include <gtest/gtest.h>

#include <array>

#include "tests/sim/executor/job_cases.h"

namespace herdsim {
namespace {

// As if transfers on the streams of `local` concerned nobody else.
std::vector<LocalFacts> facts_of(const OpGraph& graph, uint32_t local) {
  std::vector<LocalFacts> facts;
  for (const Work& work : graph.works) {
    const auto stream = static_cast<uint8_t>(work.stream);
    facts.push_back({.stream = stream,
                     .is_local = stream < kLocalStreams && (local >> stream & 1) != 0,
                     .is_transfer = work.kind == WorkKind::kCollective});
  }
  return facts;
}

// All sets of local streams that have the kernels among them.
std::vector<uint32_t> sets_of_streams() {
  std::vector<uint32_t> sets;
  for (uint32_t set = 0; set < (1U << kLocalStreams); ++set) {
    if ((set >> static_cast<size_t>(Stream::kCompute) & 1) != 0) sets.push_back(set);
  }
  return sets;
}

bool are_equal(const StretchShape& a, const StretchShape& b) {
  const auto same_mark = [](const StretchShape::Mark& one, const StretchShape::Mark& other) {
    return one.work == other.work && one.dependencies == other.dependencies &&
           one.is_awaited == other.is_awaited;
  };
  return a.back == b.back && a.ops == b.ops && a.segment_at == b.segment_at &&
         a.outside == b.outside && a.segments.size() == b.segments.size() &&
         std::equal(a.marks.begin(), a.marks.end(), b.marks.begin(), b.marks.end(), same_mark);
}

TEST(LocalOrder, knows_blocks_again_as_it_does_their_ops) {
  for (const JobCase& c : job_cases()) {
    SCOPED_TRACE(c.name);
    const PlannedJob job(c.scenario());
    StretchShapes shapes(job.graph.works.size()), plain_shapes(job.graph.works.size());
    for (const uint32_t local : sets_of_streams()) {
      const std::vector<LocalFacts> facts = facts_of(job.graph, local);
      for (Program program : job.graph.programs) {
        const LocalOrder order(program, facts, shapes);
        program.blocks.clear();
        const LocalOrder plain(program, facts, plain_shapes);
        ASSERT_EQ(order.stretches().size(), plain.stretches().size());
        for (size_t s = 0; s < order.stretches().size(); ++s) {
          ASSERT_EQ(order.stretches()[s].first_op, plain.stretches()[s].first_op);
          ASSERT_TRUE(are_equal(shapes[order.stretches()[s].shape],
                                plain_shapes[plain.stretches()[s].shape]))
              << "stretch " << s;
        }
      }
    }
  }
}

// Blocks of one kernel, after one op that differs: what the word of the second kernel is.
uint64_t word_after(WorkId before, bool awaits, const std::vector<LocalFacts>& facts,
                    const TypedVector<WorkId, Work>& works) {
  ProgramBuilder builder(works);
  const OpId start = builder.add(WorkId(0), {});
  const OpId first = builder.add(WorkId(0), std::array{start});
  const OpBlock block = builder.block_from(first, 0);
  const OpId between = builder.add(before, {});
  const OpId second = builder.add(block, std::array{between}, 0, 0);
  if (awaits) builder.add(WorkId(1), std::array{second});
  const Program program = builder.build();
  return OpMarks(program, facts).words(second.index(), 1).front();
}

TEST(OpMarks, tell_what_an_op_waits_for_and_whether_others_wait_for_it) {
  TypedVector<WorkId, Work> works;
  works.push_back({.kind = WorkKind::kCompute, .stream = Stream::kCompute, .name = "product"});
  works.push_back({.kind = WorkKind::kCollective, .stream = Stream::kDp, .name = "reduce"});
  const std::vector<LocalFacts> facts = {{.is_local = true}, {.stream = 1, .is_local = false}};
  const uint64_t word = word_after(WorkId(0), false, facts, works);
  EXPECT_EQ(word, word_after(WorkId(0), false, facts, works));
  EXPECT_NE(word, word_after(WorkId(1), false, facts, works));
  EXPECT_NE(word, word_after(WorkId(0), true, facts, works));
}

TEST(OpMarks, tell_nothing_of_ops_outside_blocks) {
  TypedVector<WorkId, Work> works;
  works.push_back({.kind = WorkKind::kCompute, .stream = Stream::kCompute, .name = "product"});
  ProgramBuilder builder(works);
  const OpId op = builder.add(WorkId(0), {});
  builder.block_from(builder.add(WorkId(0), std::array{op}), 0);
  const Program program = builder.build();
  const OpMarks marks(program, {{.is_local = true}});
  EXPECT_FALSE(OpMarks::are_telling(marks.words(0, 1)));
  EXPECT_TRUE(OpMarks::are_telling(marks.words(1, 1)));
}

// Most of a step is known so: all but the first and last passes of each chunk.
TEST(OpMarks, tell_most_ops_of_a_long_step) {
  const PlannedJob job(load_scenario(kSmallJobBase, small_job({.tp = 2,
                                                               .pp = 4,
                                                               .dp = 2,
                                                               .virtual_stages = 2,
                                                               .micro_batches = 32,
                                                               .schedule = "interleaved-1f1b"})));
  const std::vector<LocalFacts> facts =
      facts_of(job.graph, 1U << static_cast<size_t>(Stream::kCompute));
  for (const Program& program : job.graph.programs) {
    const OpMarks marks(program, facts);
    size_t telling = 0;
    for (size_t o = 0; o < program.ops.size(); ++o)
      telling += OpMarks::are_telling(marks.words(o, 1)) ? 1 : 0;
    EXPECT_GT(static_cast<double>(telling), 0.9 * static_cast<double>(program.ops.size()));
  }
}

}  // namespace
}  // namespace herdsim
