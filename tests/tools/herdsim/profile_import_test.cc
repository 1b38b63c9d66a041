// From a log to a step that follows it.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "calibrate/profile/profile_file.h"
#include "tests/tools/herdsim/run_command.h"

namespace herdsim {
namespace {

class ProfileImport : public ::testing::Test {
 protected:
  ProfileImport() : folder_(std::filesystem::path(testing::TempDir()) / "herdsim_profile_import") {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }

  std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return (folder_ / name).string();
  }
  std::string path(const std::string& name) const { return (folder_ / name).string(); }

  // All-gathers of 8 GPUs at 10 GB/s on the bus.
  std::string slow_log() const {
    std::string text =
        "# Collective test starting: all_gather_perf\n# 8 ranks on 1 hosts (x), GPU NVIDIA H100 "
        "80GB HBM3\n";
    for (int64_t size = 1 << 16; size <= int64_t{1} << 30; size *= 4) {
      const double algorithm = 10 * 8.0 / 7, us = static_cast<double>(size) / algorithm * 1e-3;
      const std::string half = fmt::format("{:.2f} {:.2f} 10.00 0", us, algorithm);
      text += fmt::format("{} {} float none -1 {} {}\n", size, size / 32, half, half);
    }
    return write("slow.log", text);
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(ProfileImport, a_step_follows_the_imported_curve) {
  const std::string mine = path("mine.textproto");
  const CommandOutput imported =
      run_command({"profile", "import", "nccl-tests", slow_log(), "-o", mine});
  ASSERT_EQ(imported.status, 0) << imported.err;
  EXPECT_NE(imported.out.find("PCIe card"), std::string::npos) << imported.out;
  const DeviceProfile profile = load_profile(mine);
  EXPECT_EQ(profile.hbm, load_profile("h100-sxm5-80gb").hbm);
  EXPECT_EQ(profile.collective("all_gather", 8, 1)->provenance.evidence, Evidence::kMeasured);
  const auto step_time = [](const std::vector<std::string>& more) {
    std::vector<std::string> command = {"step",
                                        "llama3-8b-1024",
                                        "--quiet",
                                        "--format",
                                        "json",
                                        "--set",
                                        "gpus=8",
                                        "--set",
                                        "parallel={tp:8 dp:1 sequence_parallel:true}",
                                        "--set",
                                        "training.global_batch=8",
                                        "--set",
                                        "recovery.spares=0"};
    command.insert(command.end(), more.begin(), more.end());
    const CommandOutput out = run_command(command);
    EXPECT_EQ(out.status, 0) << out.err;
    return nlohmann::json::parse(out.out).at("step_time_s").get<double>();
  };
  EXPECT_GT(step_time({"--set", "profile.base=" + mine}), 1.3 * step_time({}));
}

TEST_F(ProfileImport, nothing_is_written_where_nothing_was_read) {
  const std::string out = path("never.textproto");
  const std::string other = write("other.log", "hello\n");
  const CommandOutput run = run_command({"profile", "import", "nccl-tests", other, "-o", out});
  EXPECT_EQ(run.status, 2);
  EXPECT_NE(run.err.find("no row"), std::string::npos) << run.err;
  EXPECT_FALSE(std::filesystem::exists(out));
  // Neither where nobody says whose curves they are, or the base does not exist.
  const std::string bare =
      write("bare.log", "1048576 262144 float sum -1 74.78 14.02 24.54 0 76.17 13.77 24.09 0\n");
  EXPECT_EQ(run_command({"profile", "import", "nccl-tests", bare, "-o", out}).status, 2);
  EXPECT_EQ(
      run_command({"profile", "import", "nccl-tests", bare, "-o", out, "--set", "base=h100-sxm"})
          .status,
      2);
  EXPECT_FALSE(std::filesystem::exists(out));
  EXPECT_EQ(run_command({"profile", "import", "nccl-tests", bare, "-o", out, "--set",
                         "base=h100-sxm5-80gb", "--set", "nodes=1"})
                .status,
            0);
  EXPECT_TRUE(std::filesystem::exists(out));
}

TEST_F(ProfileImport, bad_words_are_named_with_what_was_allowed) {
  const std::string log = slow_log();
  for (const std::vector<std::string>& bad :
       {std::vector<std::string>{"profile", "import", "nccl-test", log},
        {"profile", "import", "nccl-tests"},
        {"profile", "import", "nccl-tests", log, "--set", "rank=8"},
        {"profile", "import", "nccl-tests", log, "--set", "ranks=0"},
        {"profile", "import", "nccl-tests", path("absent")},
        {"profile", "show", "h100-sxm5-80gb", "--set", "a=1"},
        {"profile", "import", "nccl-tests", log, "--set", "collective=all_together"}}) {
    const CommandOutput run = run_command(bad);
    EXPECT_EQ(run.status, 2) << bad.back();
    EXPECT_FALSE(run.err.empty());
  }
}

TEST_F(ProfileImport, json_holds_every_row_and_csv_is_what_check_reads) {
  const std::string log = slow_log();
  const nlohmann::json parsed = nlohmann::json::parse(
      run_command({"profile", "import", "nccl-tests", log, "--format", "json"}).out);
  EXPECT_EQ(parsed.at("rows_read"), 8);
  EXPECT_EQ(parsed.at("rows_skipped"), 0);
  EXPECT_EQ(parsed.at("logs")[0].at("tests")[0].at("rows").size(), 8u);
  const std::string csv = write(
      "rows.csv", run_command({"profile", "import", "nccl-tests", log, "--format", "csv"}).out);
  EXPECT_EQ(run_command({"profile", "check", "h100-sxm5-80gb", csv}).status, 0);
}

TEST_F(ProfileImport, curves_that_no_step_looks_at_are_said) {
  const std::string file = write(
      "published.textproto",
      "name: \"published\" base: \"h100-sxm5-80gb\" collective { kind: ALL_GATHER ranks: 8 "
      "bytes: [1024, 2048] microseconds: [10, 20] source { evidence: PUBLISHED text: \"x\" } }\n");
  const CommandOutput out =
      run_command({"step", "llama3-8b-1024", "--set", "profile.base=" + file});
  EXPECT_EQ(out.status, 0) << out.err;
  EXPECT_NE((out.out + out.err).find("curves of the profile"), std::string::npos) << out.out;
}

TEST_F(ProfileImport, a_profile_that_stands_on_itself_is_an_error) {
  const std::string file =
      write("circle.textproto", "name: \"circle\" base: \"./circle.textproto\"\n");
  const CommandOutput out = run_command({"profile", "show", file});
  EXPECT_EQ(out.status, 2);
  EXPECT_NE(out.err.find("circle"), std::string::npos);
}

}  // namespace
}  // namespace herdsim
