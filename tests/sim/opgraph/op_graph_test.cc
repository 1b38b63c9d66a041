#include "sim/opgraph/op_graph.h"

#include <gtest/gtest.h>

#include <array>

namespace herdsim {
namespace {

TypedVector<WorkId, Work> two_works() {
  TypedVector<WorkId, Work> works;
  works.push_back({.kind = WorkKind::kCompute, .stream = Stream::kCompute, .name = "product"});
  works.push_back({.kind = WorkKind::kCollective, .stream = Stream::kDp, .name = "reduce"});
  return works;
}

TEST(ProgramBuilder, keeps_issue_order_of_each_stream) {
  const TypedVector<WorkId, Work> works = two_works();
  ProgramBuilder builder(works);
  const OpId a = builder.add(WorkId(0), {}, 3, 1);
  const OpId b = builder.add(WorkId(1), std::array{a}, 3, 1);
  const OpId c = builder.add(WorkId(0), {}, 4, 0);
  const OpId d = builder.add(WorkId(0), std::array{a, b});
  EXPECT_EQ(builder.last(), d);
  EXPECT_EQ(builder.size(), 4u);
  const Program program = builder.build();
  ASSERT_EQ(program.stream_order.size(), kStreams);
  EXPECT_EQ(program.stream_order[static_cast<size_t>(Stream::kCompute)],
            (std::vector<OpId>{a, c, d}));
  EXPECT_EQ(program.stream_order[static_cast<size_t>(Stream::kDp)], std::vector<OpId>{b});
  EXPECT_EQ(program.ops[a.index()].micro_batch, 3);
  EXPECT_EQ(program.ops[a.index()].chunk, 1);
  EXPECT_EQ(program.ops[d.index()].micro_batch, -1);
  EXPECT_TRUE(program.dependencies_of(program.ops[c.index()]).empty());
  const auto waits = program.dependencies_of(program.ops[d.index()]);
  EXPECT_EQ(std::vector<OpId>(waits.begin(), waits.end()), (std::vector<OpId>{a, b}));
}

TEST(ProgramBuilder, puts_in_a_block_of_ops_again) {
  const TypedVector<WorkId, Work> works = two_works();
  ProgramBuilder builder(works);
  const OpId before = builder.add(WorkId(0), {});
  const OpId first = builder.add(WorkId(0), std::array{before}, 0, 0);
  builder.add(WorkId(1), std::array{before, first}, 0, 0);
  const OpBlock block = builder.block_from(first, 7);
  const OpId between = builder.add(WorkId(0), {});
  const OpId again = builder.add(block, std::array{between, before}, 4, 1);
  EXPECT_EQ(again.index(), 4u);
  const Program program = builder.build();
  ASSERT_EQ(program.blocks.size(), 2u);
  EXPECT_EQ(program.blocks[0].first_op, 1u);
  EXPECT_EQ(program.blocks[1].first_op, 4u);
  EXPECT_EQ(program.blocks[1].ops, 2u);
  EXPECT_EQ(program.blocks[1].number, 7u);
  const auto waits = [&](size_t op) {
    const auto all = program.dependencies_of(program.ops[op]);
    return std::vector<OpId>(all.begin(), all.end());
  };
  EXPECT_EQ(waits(4), std::vector<OpId>{between});
  EXPECT_EQ(waits(5), (std::vector<OpId>{before, again}));
  EXPECT_EQ(program.ops[5].micro_batch, 4);
  EXPECT_EQ(program.ops[5].chunk, 1);
  EXPECT_EQ(program.stream_order[static_cast<size_t>(Stream::kCompute)],
            (std::vector<OpId>{before, first, between, again}));
  EXPECT_EQ(program.stream_order[static_cast<size_t>(Stream::kDp)],
            (std::vector<OpId>{OpId(2), OpId(5)}));
}

TEST(ProgramBuilder, refuses_to_wait_for_what_comes_later) {
  const TypedVector<WorkId, Work> works = two_works();
  ProgramBuilder builder(works);
  EXPECT_DEATH(builder.add(WorkId(0), std::array{OpId(0)}), "earlier");
}

TEST(OpGraph, ranks_of_a_stage_run_one_program) {
  OpGraph graph;
  graph.grid = RankGrid({.tp = 2, .pp = 3, .dp = 2});
  EXPECT_EQ(graph.program_of(RankId(0)), ProgramId(0));
  EXPECT_EQ(graph.program_of(RankId(5)), ProgramId(2));
  EXPECT_EQ(graph.program_of(RankId(6)), ProgramId(0));
}

}  // namespace
}  // namespace herdsim
