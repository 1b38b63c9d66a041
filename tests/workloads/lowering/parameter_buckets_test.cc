// How units are put into buckets, over the whole table of plans; what buckets move is a law of
// lowering_test.cc.
#include "workloads/parameter_buckets.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "tests/workloads/lowering/plans.h"

namespace herdsim {
namespace {

int64_t parameters_of(const WorkloadSpec& spec, UnitKind unit) {
  const UnitParameters p = unit_parameters(spec, unit);
  return p.dense + p.experts;
}

// A chunk with everything: embedding, layers and head.
const std::vector<UnitKind> kUnits = {UnitKind::kEmbedding, UnitKind::kLayer, UnitKind::kLayer,
                                      UnitKind::kLayer,     UnitKind::kLayer, UnitKind::kHead};

ChunkBuckets buckets_of(PlanCase c, double size, size_t chunk = 0) {
  c.software.dp_bucket_parameters = size;
  c.software.dp_bucket_parameters_per_rank = 0;
  c.software.dp_bucket_whole_chunks = chunk > 0;
  TypedVector<WorkId, Work> works;
  const RankGrid grid = c.plan.grid(false);
  const StepWork work = step_work(c.spec(), grid, works);
  return parameter_buckets(c.spec(), {kUnits, kUnits}, work, works)[chunk];
}

TEST(ParameterBuckets, are_full_but_for_the_first_and_no_fuller_than_they_must_be) {
  for (const PlanCase& c : plan_cases()) {
    for (const double size : {0.0, 1e3, 60e3, 200e3, 1e9}) {
      const ChunkBuckets buckets = buckets_of(c, size);
      ASSERT_EQ(buckets.of_unit.size(), kUnits.size()) << c.name;
      ASSERT_EQ(buckets.of_unit.front(), 0u) << c.name;
      std::vector<int64_t> held(buckets.reduce.size()), without_first(buckets.reduce.size());
      for (size_t u = 0; u < kUnits.size(); ++u) {
        const size_t b = buckets.of_unit[u];
        ASSERT_LT(b, held.size()) << c.name;
        const bool opens = u == 0 || buckets.of_unit[u - 1] != b;
        if (u > 0) {
          ASSERT_EQ(b, buckets.of_unit[u - 1] + (opens ? 1 : 0)) << c.name;
        }
        held[b] += parameters_of(c.spec(), kUnits[u]);
        if (!opens) without_first[b] += parameters_of(c.spec(), kUnits[u]);
      }
      for (size_t b = 0; b < held.size(); ++b) {
        if (b > 0) {
          EXPECT_GE(static_cast<double>(held[b]), size) << c.name;
        }
        EXPECT_TRUE(without_first[b] == 0 || static_cast<double>(without_first[b]) < size)
            << c.name;
      }
    }
  }
}

TEST(ParameterBuckets, are_a_unit_each_without_a_size_and_a_chunk_each_after_the_first) {
  for (const PlanCase& c : plan_cases()) {
    EXPECT_EQ(buckets_of(c, 0).reduce.size(), kUnits.size()) << c.name;
    EXPECT_EQ(buckets_of(c, 1, 1).reduce.size(), 1u) << c.name;
    EXPECT_EQ(buckets_of(c, 1).reduce.size(), kUnits.size()) << c.name;
  }
}

TEST(ParameterBuckets, move_all_bytes_of_their_units_in_one_collective_over_the_same_ranks) {
  for (const PlanCase& c : plan_cases()) {
    TypedVector<WorkId, Work> works;
    PlanCase one = c;
    one.software.dp_bucket_parameters = 1e12;
    const StepWork work = step_work(one.spec(), one.plan.grid(false), works);
    const auto buckets = parameter_buckets(one.spec(), {kUnits}, work, works);
    Bytes apart, together;
    for (const UnitKind unit : kUnits) {
      for (const WorkId id : work.reduce[static_cast<size_t>(unit)]) apart += works[id].bytes;
    }
    std::vector<Communicator> over;
    for (const WorkId id : buckets[0].reduce[0]) {
      together += works[id].bytes;
      EXPECT_EQ(std::count(over.begin(), over.end(), works[id].communicator), 0) << c.name;
      over.push_back(works[id].communicator);
    }
    EXPECT_EQ(together, apart) << c.name;
  }
}

}  // namespace
}  // namespace herdsim
