// Passes that are put in as blocks are the ops that lowering each of them would give.
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "tests/workloads/lowering/plans.h"

namespace herdsim {
namespace {

auto facts_of(const Op& op) {
  return std::tuple(op.work, op.micro_batch, op.chunk, op.phase, op.first_dependency,
                    op.dependencies, op.peer, op.receive);
}

OpGraph lower_op_by_op(const PlanCase& c) {
  return lower_step(c.spec(), c.row(), layout_stages(c.model, c.plan, c.row()), {.op_by_op = true});
}

TEST(KnownPasses, are_the_ops_of_each_pass_by_itself) {
  for (const PlanCase& c : plan_cases()) {
    const OpGraph fast = c.lower(), plain = lower_op_by_op(c);
    ASSERT_EQ(fast.programs.size(), plain.programs.size()) << c.name;
    for (size_t p = 0; p < fast.programs.size(); ++p) {
      const Program& one = fast.programs[ProgramId(p)];
      const Program& other = plain.programs[ProgramId(p)];
      ASSERT_EQ(one.dependencies, other.dependencies) << c.name << ", stage " << p;
      ASSERT_EQ(one.stream_order, other.stream_order) << c.name << ", stage " << p;
      ASSERT_EQ(one.ops.size(), other.ops.size()) << c.name << ", stage " << p;
      for (size_t o = 0; o < one.ops.size(); ++o)
        ASSERT_EQ(facts_of(one.ops[o]), facts_of(other.ops[o])) << c.name << ", op " << o;
      EXPECT_TRUE(other.blocks.empty()) << c.name;
    }
  }
}

// By op of the block: its work, its phase, and how far back what it waits for is; 0 before the
// block.
using Shape = std::vector<std::tuple<WorkId, StepPhase, std::vector<size_t>>>;

Shape shape_of(const Program& program, const Program::Block& block) {
  Shape shape;
  for (size_t o = block.first_op; o < block.first_op + block.ops; ++o) {
    std::vector<size_t> back;
    for (const OpId before : program.dependencies_of(program.ops[o]))
      back.push_back(before.index() < block.first_op ? 0 : o - before.index());
    shape.emplace_back(program.ops[o].work, program.ops[o].phase, std::move(back));
  }
  return shape;
}

TEST(KnownPasses, are_alike_where_they_have_one_number) {
  size_t repeated = 0;
  for (const PlanCase& c : plan_cases()) {
    const OpGraph graph = c.lower();
    std::map<uint32_t, Shape> shapes;
    for (const Program& program : graph.programs) {
      uint32_t end = 0;
      for (const Program::Block& block : program.blocks) {
        ASSERT_GE(block.first_op, end) << c.name;
        end = block.first_op + block.ops;
        ASSERT_LE(end, program.ops.size()) << c.name;
        const auto [known, is_new] = shapes.emplace(block.number, shape_of(program, block));
        if (is_new) continue;
        ++repeated;
        ASSERT_EQ(known->second, shape_of(program, block)) << c.name << ", block " << block.number;
      }
    }
  }
  EXPECT_GT(repeated, plan_cases().size());
}

}  // namespace
}  // namespace herdsim
