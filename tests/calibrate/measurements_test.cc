#include "calibrate/profile/measurements.h"

#include <gtest/gtest.h>

#include "sim/base/error.h"

namespace herdsim {
namespace {

std::vector<Fault> faults_of(std::string_view text) {
  try {
    read_measurements_csv(text, "t.csv");
  } catch (const SpecError& error) {
    return error.faults();
  }
  return {};
}

TEST(Measurements, the_columns_tell_the_kind_in_any_order) {
  const Measurements gemm =
      read_measurements_csv("latency_ms,k,n,m,dtype,kernel\n0.5,3,2,1,bfloat16,x\n", "t");
  ASSERT_EQ(gemm.gemm.size(), 1u);
  EXPECT_EQ(gemm.gemm[0].shape.m, 1);
  EXPECT_EQ(gemm.gemm[0].shape.k, 3);
  EXPECT_DOUBLE_EQ(gemm.gemm[0].seconds, 5e-4);
  const Measurements attention = read_measurements_csv(
      "kernel,batch,seqlen,q_heads,kv_heads,head_dim,causal,pass,time_us\nfa3,2,1024,16,4,128,0,"
      "bwd,7\n",
      "t");
  ASSERT_EQ(attention.attention.size(), 1u);
  EXPECT_EQ(attention.attention[0].shape.mask_fraction, 1.0);
  EXPECT_EQ(attention.attention[0].shape.pass, AttentionPass::kBackward);
  EXPECT_DOUBLE_EQ(attention.attention[0].seconds, 7e-6);
  EXPECT_EQ(
      read_measurements_csv("class,bytes,time_s\noptimizer,100,1\n", "t").stream[0].traffic.stream,
      StreamClass::kOptimizer);
  const Measurements copy = read_measurements_csv("time_us,bytes,copy\n2,4096,peer\n", "t");
  EXPECT_EQ(copy.copy[0].kind, CopyMeasurement::Kind::kPeer);
  EXPECT_EQ(copy.copy[0].size, Bytes(4096));
  const Measurements collective =
      read_measurements_csv("op,gpus,nodes,bytes,time_us\nalltoall,16,2,1024,9\n", "t");
  EXPECT_EQ(collective.collective[0].kind, "all_to_all");
  EXPECT_EQ(collective.collective[0].nodes, 2);
}

TEST(Measurements, every_bad_cell_is_a_fault_on_its_line) {
  const std::vector<Fault> faults =
      faults_of("dtype,m,n,k,latency_ms\nbf16,1,2,3,4\nint4,1,2,3,4\nbf16,-1,2,x,0\n");
  ASSERT_EQ(faults.size(), 4u);
  EXPECT_EQ(faults[0].line, 3);
  EXPECT_EQ(faults[0].field, "dtype");
  EXPECT_EQ(faults[1].line, 4);
  EXPECT_EQ(faults[1].field, "m");
}

TEST(Measurements, tables_that_fit_nothing_are_refused) {
  for (const std::string_view text :
       {"", "a,b\n1,2\n", "dtype,m,n,k\nbf16,1,1,1\n", "dtype,m,n,k,time_us\nbf16,1,1\n",
        "dtype,m,n,k,time_us\n\"bf16,1,1,1,1\n"}) {
    EXPECT_FALSE(faults_of(text).empty()) << text;
  }
}

TEST(Measurements, quotes_comments_and_carriage_returns_are_read_as_usual) {
  const Measurements rows = read_measurements_csv(
      "# made by hand\r\ndtype,m,n,k,note,time_us\r\n\"bf16\",1,2,3,\"a, "
      "\"\"b\"\"\nc\",4\r\nbf16,5,6,7,,8\r\n",
      "t");
  ASSERT_EQ(rows.gemm.size(), 2u);
  EXPECT_EQ(rows.gemm[1].shape.m, 5);
}

}  // namespace
}  // namespace herdsim
