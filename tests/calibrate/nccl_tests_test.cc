// Logs of every generation as text in this file, public logs and cases from the field where they
// are at hand, and mutations of all of them.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>

#include "calibrate/fit/log_curves.h"
#include "calibrate/nccl_tests/link_verdict.h"
#include "calibrate/nccl_tests/nccl_tests_log.h"
#include "sim/base/rng.h"

namespace herdsim {
namespace {

// What one row, the last of its log, must be read as.
struct Generation {
  std::string name;
  std::string text;
  std::string collective;
  int64_t ranks = 0, nodes = 0;
  size_t rows = 1;
  int64_t size = 1048576;
  double out_of_place_us = 0, in_place_us = 0, bus = 0;
  std::string reduction;
  size_t skipped = 0;
};

// 1 MiB in 74.78 us is 14.02 GB/s; an all-reduce of 8 ranks has 24.54 on the bus.
std::vector<Generation> generations() {
  const std::string devices8 =
      "# Using devices\n#   Rank  0 Pid 1 on node-a device  0 [0x00] NVIDIA H100 80GB HBM3\n"
      "#   Rank  7 Pid 1 on node-a device  7 [0x00] NVIDIA H100 80GB HBM3\n";
  const std::string modern =
      "#       size         count      type   redop    root     time   algbw   busbw #wrong     "
      "time   algbw   busbw #wrong\n"
      "#        (B)    (elements)                               (us)  (GB/s)  (GB/s)            "
      "(us)  (GB/s)  (GB/s)\n";
  const std::string row =
      "     1048576        262144     float     sum      -1    74.78   14.02   24.54      0    "
      "76.17   13.77   24.09      0\n";
  return {
      {"2017, milliseconds",
       "nThread 1 nGpus 8 minBytes 8 maxBytes 1048576 step: 2(factor) warmup iters: 5 iters: 20 "
       "validation: 1\n"
       "#                                                 out-of-place                    "
       "in-place\n"
       "#      bytes             N    type      op     time  algbw  busbw      res     time  algbw "
       " busbw      res\n"
       "     1048576        262144   float     sum    0.075  13.98  24.47    0e+00    0.076  13.80 "
       " 24.15    1e-06\n",
       "all_reduce", 8, 0, 1, 1048576, 75, 76, 24.47, "sum"},
      {"2019, error column and no root",
       devices8 + "#                                                     out-of-place              "
                  "         in-place\n"
                  "#       size         count    type   redop     time   algbw   busbw  error     "
                  "time   algbw   busbw  error\n"
                  "#        (B)    (elements)                     (us)  (GB/s)  (GB/s)            "
                  "(us)  (GB/s)  (GB/s)\n"
                  "     1048576        262144   float     sum    74.78   14.02   24.54  1e-06    "
                  "76.17   13.77   24.09    N/A\n",
       "all_reduce", 8, 1, 1, 1048576, 74.78, 76.17, 24.54, "sum"},
      {"all-to-all with an empty reduction",
       devices8 + "#       size         count    type   redop     time   algbw   busbw  error     "
                  "time   algbw   busbw  error\n"
                  "     1048576         32768   float            87.42   11.99   10.50    N/A    "
                  "88.90   11.79   10.32    N/A\n",
       "all_to_all", 8, 1, 1, 1048576, 87.42, 88.90, 10.50, ""},
      {"broadcast with a root only",
       "# Collective test starting: broadcast_perf\n" + devices8 +
           "#       size         count    type    root     time   algbw   busbw  error     time   "
           "algbw   busbw  error\n"
           "     1048576        262144   float       0    74.78   14.02   14.02  0e+00    76.17   "
           "13.77   13.77  0e+00\n",
       "broadcast", 8, 1, 1, 1048576, 74.78, 76.17, 14.02, ""},
      {"modern",
       "# Collective test starting: all_reduce_perf\n" + devices8 + modern + row +
           "# Out of bounds values : 0 OK\n",
       "all_reduce", 8, 1, 1, 1048576, 74.78, 76.17, 24.54, "sum"},
      {"header without its mark", modern.substr(1) + row, "all_reduce", 8, 0, 1, 1048576, 74.78,
       76.17, 24.54, "sum"},
      {"no header at all", row, "all_reduce", 8, 0, 1, 1048576, 74.78, 76.17, 24.54, "sum"},
      {"per-iteration columns",
       "#       size         count      type   redop    root     time   algbw   busbw  #wrong    "
       "i_min    i_max    i_p99    i_cv%     time   algbw   busbw  #wrong    i_min    i_max    "
       "i_p99    i_cv%\n"
       "     1048576        262144     float     sum      -1    74.78   14.02   24.54       0    "
       "70.00    80.00    79.00     2.00    76.17   13.77   24.09       0    70.00    80.00    "
       "79.00     2.00\n",
       "all_reduce", 8, 0, 1, 1048576, 74.78, 76.17, 24.54, "sum"},
      {"time stamps behind",
       "#       size         count      type   redop    root     time   algbw   busbw #wrong     "
       "time   algbw   busbw #wrong           timestamp\n"
       "     1048576        262144     float     sum      -1    74.78   14.02   24.54      0    "
       "76.17   13.77   24.09      0  2025-11-03 10:20:30\n",
       "all_reduce", 8, 0, 1, 1048576, 74.78, 76.17, 24.54, "sum"},
      {"columns without a name behind",
       modern + row.substr(0, row.size() - 1) + "  Ring  LL128  24\n", "all_reduce", 8, 0, 1,
       1048576, 74.78, 76.17, 24.54, "sum"},
      {"CPU time",
       "#       size         count      type   redop    root  cputime   algbw   busbw #wrong  "
       "cputime   algbw   busbw #wrong\n" +
           row,
       "all_reduce", 8, 0, 1, 1048576, 74.78, 76.17, 24.54, "sum"},
      {"exponent form and a count of wrong elements in it",
       "# Collective test starting: all_reduce_perf\n" + modern +
           " 8589934592    2147483648     float     sum      -1  1.2e+07    0.72    1.26  3e+05  "
           "1.2e+07    0.72    1.26      0\n",
       "all_reduce", 0, 0, 1, 8589934592, 1.2e7, 1.2e7, 1.26, "sum"},
      {"mpirun --tag-output", "[1,0]<stdout>:" + modern + "[1,0]<stdout>:" + row, "all_reduce", 8,
       0, 1, 1048576, 74.78, 76.17, 24.54, "sum"},
      {"mpirun --timestamp-output", "Thu Jul 18 15:41:05 2024<stdout>:" + row, "all_reduce", 8, 0,
       1, 1048576, 74.78, 76.17, 24.54, "sum"},
      {"srun --label", "0: " + modern + "0: " + row, "all_reduce", 8, 0, 1, 1048576, 74.78, 76.17,
       24.54, "sum"},
      {"a pod's name and time before", "2025-01-02T10:00:00.1Z worker-0 " + row, "all_reduce", 8, 0,
       1, 1048576, 74.78, 76.17, 24.54, "sum"},
      {"a rank's mark amid the row",
       modern + "[0]     1048576        262144     float     sum      -1[0]    74.78   14.02   "
                "24.54      0[0]    76.17   13.77   24.09      0\n",
       "all_reduce", 8, 0, 1, 1048576, 74.78, 76.17, 24.54, "sum"},
      {"messages between the header and rows, and within one",
       modern + "host:3442:3442 [0] NCCL INFO Launch mode Parallel\n" +
           row.substr(0, row.find("    74.78")) +
           "host:3442:3450 [0] NCCL INFO Connected all rings\nhost:3442:3451 [1] NCCL WARN "
           "something 8 2 more\n" +
           row.substr(row.find("    74.78")),
       "all_reduce", 8, 0, 1, 1048576, 74.78, 76.17, 24.54, "sum"},
      {"Windows line ends and colours",
       "\x1b[32m" + modern.substr(0, modern.size() - 1) + "\r\n" + row.substr(0, row.size() - 1) +
           "\x1b[0m\r\n",
       "all_reduce", 8, 0, 1, 1048576, 74.78, 76.17, 24.54, "sum"},
      {"cut in the last row", modern + row + row.substr(0, 80), "all_reduce", 8, 0, 1, 1048576,
       74.78, 76.17, 24.54, "sum", 1},
      {"a row whose columns disagree",
       modern +
           "     1048576        262144     float     sum      -1    14.02   24.54   74.78      0   "
           " 76.17   13.77   24.09      0\n" +
           row,
       "all_reduce", 8, 0, 1, 1048576, 74.78, 76.17, 24.54, "sum", 1},
      {"a device list that was cut",
       devices8 + "#   Rank  8 Pid 1 on nod...\n" + modern +
           "     1048576        262144     float     sum      -1    74.78   14.02   27.16      0   "
           " 76.17   13.77   26.68      0\n"
           "  1048576000     262144000     float     sum      -1     4000  262.14  507.90      0   "
           "  4000  262.14  507.90      0\n",
       "all_reduce", 32, 16, 2, 1048576000, 4000, 4000, 507.90, "sum"},
      {"JSON",
       R"({"version":2,"start_time":"2025-11-03 10:00:00","args":["\/opt\/all_reduce_perf","-J"],"env":["SECRET_TOKEN=abc","HOSTNAME=node-a"],
"nccl_version":22902,"config":{"nthreads":1,"ngpus":8,"devices":[{"rank":0,"hostname":"node-a","device_info":"NVIDIA H100 80GB HBM3"},
{"rank":1,"hostname":"node-a","device_info":"NVIDIA H100 80GB HBM3"}]},"results":[{"size":1048576,"count":262144,"type":"float","redop":"sum","root":"    -1",
"out_of_place":{"time":74.780000,"alg_bw":14.020000,"bus_bw":14.02,"nwrong":0.000000},"in_place":{"time":76.17,"alg_bw":13.77,"bus_bw":13.77,"nwrong":null}}],
"out_of_bounds":{"count":0,"okay":"true"},"average_bus_bandwidth":{"bandwidth":14.0,"okay":"unchecked"}})",
       "all_reduce", 2, 1, 1, 1048576, 74.78, 76.17, 14.02, "sum"},
  };
}

TEST(NcclTests, every_generation_and_launcher_is_read_to_the_digit) {
  for (const Generation& g : generations()) {
    SCOPED_TRACE(g.name);
    const NcclTestsLog log = read_nccl_tests("log.txt", g.text);
    ASSERT_EQ(log.tests.size(), 1u);
    const NcclTest& test = log.tests[0];
    EXPECT_EQ(test.collective, g.collective);
    EXPECT_EQ(test.ranks, g.ranks);
    EXPECT_EQ(test.nodes, g.nodes);
    EXPECT_EQ(log.skipped.size(), g.skipped);
    ASSERT_EQ(test.rows.size(), g.rows);
    const NcclTestsRow& row = test.rows.back();
    EXPECT_EQ(row.size.count(), g.size);
    EXPECT_EQ(row.reduction, g.reduction);
    ASSERT_TRUE(row.out_of_place && row.in_place);
    EXPECT_NEAR(row.out_of_place->microseconds, g.out_of_place_us, 0.01 * g.out_of_place_us);
    EXPECT_NEAR(row.in_place->microseconds, g.in_place_us, 0.01 * g.in_place_us);
    EXPECT_DOUBLE_EQ(row.out_of_place->bus_bandwidth, g.bus);
  }
}

TEST(NcclTests, what_was_not_checked_is_neither_right_nor_wrong) {
  const auto text = [](std::string_view wrong) {
    return fmt::format("1048576 262144 float sum -1 74.78 14.02 24.54 {} 76.17 13.77 24.09 N/A\n",
                       wrong);
  };
  const NcclTest unchecked = read_nccl_tests("l", text("N/A")).tests.at(0);
  EXPECT_FALSE(unchecked.rows[0].out_of_place->wrong.has_value());
  EXPECT_TRUE(judge_links(unchecked).loud.empty());
  EXPECT_TRUE(judge_links(read_nccl_tests("l", text("0")).tests.at(0)).loud.empty());
  const LinkVerdict wrong = judge_links(read_nccl_tests("l", text("3e+05")).tests.at(0));
  ASSERT_EQ(wrong.loud.size(), 1u);
  EXPECT_NE(wrong.loud[0].find("300000"), std::string::npos);
}

TEST(NcclTests, several_tests_in_a_file_are_several_and_the_footer_is_no_bandwidth) {
  std::string text;
  for (const char* program : {"all_gather_perf", "reduce_scatter_perf"}) {
    text +=
        fmt::format("# Collective test starting: {}\n# 16 ranks on 2 hosts (x), GPU NVIDIA H200\n",
                    program) +
        "  67108864  1048576  float  sum  -1  200.0  335.54  314.57  0  200.0  335.54  314.57  0\n"
        "# Out of bounds values : 0 OK\n# Avg bus bandwidth    : 99999.0\n";
  }
  const NcclTestsLog log = read_nccl_tests("log", text);
  ASSERT_EQ(log.tests.size(), 2u);
  EXPECT_EQ(log.tests[0].collective, "all_gather");
  EXPECT_EQ(log.tests[1].collective, "reduce_scatter");
  for (const NcclTest& test : log.tests) {
    EXPECT_TRUE(test.finished);
    EXPECT_EQ(test.ranks, 16);
    EXPECT_EQ(test.nodes, 2);
    EXPECT_DOUBLE_EQ(judge_links(test).bus_bandwidth, 314.57);
  }
}

TEST(NcclTests, a_log_of_something_else_gives_no_test) {
  for (const std::string_view text :
       {"", "hello\n", "{\"a\": 1}", "{", "{\"results\": [{\"size\": 8}]}",
        "# Out of bounds values : 0 OK\n", "12 34 word\n1 2 3 4 5 6 7 8\n"}) {
    EXPECT_EQ(read_nccl_tests("x", text).rows(), 0u) << text;
  }
}

TEST(NcclTests, a_killed_runs_json_keeps_its_whole_rows_and_nothing_of_the_environment) {
  const std::string text = generations().back().text;
  const std::string cut =
      text.substr(0, text.find("],\n\"out_of_bounds\"")) + ",{\"size\":2097152,\"cou";
  const NcclTestsLog log = read_nccl_tests("x", cut);
  ASSERT_EQ(log.rows(), 1u);
  EXPECT_FALSE(log.tests[0].finished);
  EXPECT_FALSE(log.tests[0].notes.empty());
  const LogCurves curves = curves_of_logs({log}, "s");
  ASSERT_EQ(curves.curves.size(), 1u);
  EXPECT_EQ(curves.curves[0].provenance.source.find("node-a"), std::string::npos);
  EXPECT_EQ(curves.curves[0].provenance.source.find("SECRET"), std::string::npos);
}

NcclTest test_of(const std::string& collective, int64_t ranks, int64_t nodes,
                 const std::string& gpu, double bus) {
  const double algorithm = bus / nccl_tests_bus_factor(collective, ranks);
  const NcclTestsHalf half{8589934592.0 / algorithm * 1e-3, algorithm, bus, 0};
  NcclTest test{
      .collective = collective, .ranks = ranks, .nodes = nodes, .gpu = gpu, .finished = true};
  test.rows.push_back({.size = gibibytes(8), .out_of_place = half, .in_place = half});
  return test;
}

bool says(const std::vector<std::string>& lines, std::string_view what) {
  return std::any_of(lines.begin(), lines.end(),
                     [&](const std::string& l) { return l.find(what) != std::string::npos; });
}

TEST(LinkVerdict, bounds_are_those_of_the_closed_forms) {
  const std::string h100 = "NVIDIA H100 80GB HBM3";
  const VerdictOptions nic48{.nic_gigabits_per_second = 384};
  EXPECT_DOUBLE_EQ(judge_links(test_of("all_gather", 8, 1, h100, 366)).bound, 450);
  EXPECT_DOUBLE_EQ(judge_links(test_of("all_reduce", 8, 1, h100, 482)).bound, 700);
  EXPECT_NEAR(judge_links(test_of("all_to_all", 16, 2, h100, 80), nic48).bound, 90.0, 0.01);
  EXPECT_NEAR(judge_links(test_of("all_to_all", 48, 6, h100, 50), nic48).bound, 56.4, 0.01);
  EXPECT_NEAR(judge_links(test_of("all_to_all", 128, 16, h100, 45), nic48).bound, 50.8, 0.01);
  EXPECT_DOUBLE_EQ(judge_links(test_of("all_gather", 80, 10, h100, 324)).bound, 400);
  EXPECT_DOUBLE_EQ(judge_links(test_of("all_reduce", 10, 10, h100, 48)).bound, 50);
}

TEST(LinkVerdict, sums_in_the_switch_are_fine_and_a_tree_over_two_nodes_is_no_network) {
  const std::string h100 = "NVIDIA H100 80GB HBM3";
  const LinkVerdict nvls = judge_links(test_of("all_reduce", 8, 1, h100, 480));
  EXPECT_TRUE(nvls.suspicious.empty());
  EXPECT_TRUE(says(nvls.fine, "not for all-gather or reduce-scatter"));
  const LinkVerdict tree = judge_links(test_of("all_reduce", 16, 2, h100, 469));
  EXPECT_TRUE(tree.above_ring);
  EXPECT_TRUE(says(tree.suspicious, "no speed of the network"));
  EXPECT_TRUE(judge_links(test_of("all_reduce", 16, 2, h100, 390)).suspicious.empty());
  EXPECT_TRUE(
      says(judge_links(test_of("all_gather", 16, 2, h100, 150)).suspicious, "of the network"));
  EXPECT_TRUE(says(judge_links(test_of("all_gather", 16, 2, h100, 900)).suspicious,
                   "above what these links"));
  EXPECT_TRUE(says(judge_links(test_of("all_gather", 8, 1, h100, 20)).suspicious, "PCIe"));
}

TEST(LinkVerdict, a_pcie_pair_is_no_sxm_whatever_both_are_called) {
  const VerdictOptions sxm{.used_as = "h100-sxm5-80gb"};
  EXPECT_TRUE(
      says(judge_links(test_of("all_reduce", 2, 1, "NVIDIA H100 PCIe", 115.9), sxm).suspicious,
           "another machine"));
  EXPECT_TRUE(says(judge_links(test_of("all_reduce", 2, 1, "", 115.9), sxm).suspicious, "PCIe"));
  EXPECT_TRUE(judge_links(test_of("all_reduce", 2, 1, "NVIDIA H100 80GB HBM3", 320), sxm)
                  .suspicious.empty());
}

TEST(LogCurves, rows_of_zero_bytes_launch_and_are_left_out_of_curves) {
  const NcclTestsLog log =
      read_nccl_tests("log",
                      "# Collective test starting: all_reduce_perf\n# 8 ranks on 1 hosts (x), GPU "
                      "NVIDIA H100 80GB HBM3\n"
                      "0 0 float sum -1 35.20 0.00 0.00 N/A 34.05 0.00 0.00 N/A\n"
                      "1048576 262144 float sum -1 74.78 14.02 24.54 N/A 76.17 13.77 24.09 N/A\n");
  EXPECT_NEAR(judge_links(log.tests.at(0)).launch_us, 34.6, 0.1);
  const LogCurves curves = curves_of_logs({log}, "mine");
  ASSERT_EQ(curves.curves.size(), 1u);
  EXPECT_EQ(curves.curves[0].points.size(), 1u);
  EXPECT_EQ(curves.curves[0].provenance.evidence, Evidence::kMeasured);
}

std::string file_text(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

const std::filesystem::path kShared = std::filesystem::path(HERDSIM_SOURCE_DIR) / "../shared";

struct FieldCase {
  std::string file;
  std::string collective;
  int64_t ranks;
  size_t rows, zero_rows;
  double peak;
};

TEST(NcclTests, cases_from_the_field_are_read_whole) {
  if (!std::filesystem::exists(kShared / "cases/files"))
    GTEST_SKIP() << "no cases beside the repository";
  for (const FieldCase& c :
       {FieldCase{"nccl-sb-allreduce", "all_reduce", 8, 34, 2, 235.26},
        FieldCase{"nccl-sb-alltoall", "all_to_all", 8, 34, 5, 226.16},
        FieldCase{"nccl-mpirun-timestamp-output", "all_reduce", 40, 1, 0, 5.92},
        FieldCase{"nccl-h100-pcie-pair", "all_reduce", 2, 2, 0, 115.93}}) {
    SCOPED_TRACE(c.file);
    const NcclTestsLog log =
        read_nccl_tests("log.txt", file_text(kShared / "cases/files" / c.file / "log.txt"));
    ASSERT_EQ(log.tests.size(), 1u);
    const NcclTest& test = log.tests[0];
    EXPECT_EQ(test.collective, c.collective);
    EXPECT_EQ(test.ranks, c.ranks);
    EXPECT_EQ(test.rows.size(), c.rows);
    EXPECT_EQ(log.skipped.size(), 0u);
    EXPECT_EQ(
        static_cast<size_t>(std::count_if(test.rows.begin(), test.rows.end(),
                                          [](const NcclTestsRow& r) { return r.size <= Bytes(); })),
        c.zero_rows);
    EXPECT_DOUBLE_EQ(judge_links(test).bus_bandwidth, c.peak);
  }
}

TEST(NcclTests, public_logs_are_read_without_a_skipped_row) {
  if (!std::filesystem::exists(kShared / "data/nccl_logs"))
    GTEST_SKIP() << "no public logs beside the repository";
  size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(kShared / "data/nccl_logs")) {
    if (entry.path().extension() != ".log") continue;
    SCOPED_TRACE(entry.path().filename());
    const NcclTestsLog log = read_nccl_tests(entry.path().string(), file_text(entry.path()));
    EXPECT_EQ(log.skipped.size(), 0u);
    EXPECT_GE(log.rows(), 24u);
    for (const NcclTest& test : log.tests) {
      EXPECT_FALSE(test.collective.empty());
      EXPECT_GT(test.ranks, 0);
      EXPECT_TRUE(test.notes.empty());
    }
    ++files;
  }
  EXPECT_GE(files, 10u);
}

// Bytes changed, removed, doubled and cut. Nothing may be read that does not hold together.
TEST(NcclTests, mutated_logs_never_crash_and_never_give_a_row_that_contradicts_itself) {
  RngStream random(7, "tests/nccl_tests", 0);
  for (const Generation& g : generations()) {
    for (int round = 0; round < 300; ++round) {
      std::string text = g.text;
      for (int64_t edits = 1 + static_cast<int64_t>(4 * random.uniform());
           edits > 0 && !text.empty(); --edits) {
        const auto at =
            static_cast<size_t>(random.uniform() * static_cast<double>(text.size() - 1));
        switch (static_cast<int>(4 * random.uniform())) {
          case 0:
            text[at] = static_cast<char>(256 * random.uniform());
            break;
          case 1:
            text.erase(at, static_cast<size_t>(20 * random.uniform()));
            break;
          case 2:
            text.insert(at, text.substr(at, static_cast<size_t>(60 * random.uniform())));
            break;
          default:
            text.resize(at);
        }
      }
      const NcclTestsLog log = read_nccl_tests("x", text);
      for (const NcclTest& test : log.tests) {
        judge_links(test);
        for (const NcclTestsRow& row : test.rows) {
          EXPECT_GE(row.size.count(), 0);
          EXPECT_GT(row.seconds(), 0) << g.name << "\n" << text;
        }
      }
      curves_of_logs({log}, "s");
    }
  }
}

TEST(NcclTestsRow, takes_the_mean_of_its_halves_or_the_lesser_where_one_was_disturbed) {
  const auto row = [](double out_of_place, double in_place) {
    return NcclTestsRow{.out_of_place = NcclTestsHalf{.microseconds = out_of_place},
                        .in_place = NcclTestsHalf{.microseconds = in_place}};
  };
  EXPECT_DOUBLE_EQ(row(50, 52).seconds(), 51e-6);
  EXPECT_DOUBLE_EQ(row(300, 70).seconds(), 70e-6);
  EXPECT_EQ(NcclTestsRow{}.seconds(), 0);
}

}  // namespace
}  // namespace herdsim
