// Bad input: exit 2, every fault named, nothing on standard output, never a crash.
#include <gtest/gtest.h>
#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>

#include "tests/tools/herdsim/run_command.h"

namespace herdsim {
namespace {

using testing::HasSubstr;

// Files of one test, removed with it.
class Scratch {
 public:
  Scratch() {
    const auto* test = testing::UnitTest::GetInstance()->current_test_info();
    folder_ = std::filesystem::path(testing::TempDir()) / (std::string("herdsim_") + test->name());
    std::filesystem::create_directories(folder_);
  }
  ~Scratch() { std::filesystem::remove_all(folder_); }
  std::string file(const std::string& name, const std::string& text) const {
    const auto path = folder_ / name;
    std::ofstream(path, std::ios::binary) << text;
    return path.string();
  }
  std::string path() const { return folder_.string(); }

 private:
  std::filesystem::path folder_;
};

struct Case {
  std::vector<std::string> sets;
  std::vector<std::string> expected;  // in the message
};

std::vector<std::string> step_with(const std::vector<std::string>& sets) {
  std::vector<std::string> arguments = {"step", "llama3-405b-16384"};
  for (const std::string& set : sets) {
    arguments.push_back("--set");
    arguments.push_back(set);
  }
  return arguments;
}

TEST(BadInput, each_wrong_field_exits_with_2_and_names_itself) {
  const std::vector<Case> cases = {
      {{"parallel.tpp=8"}, {"tpp", "parallel", "\"tp\""}},
      {{"model.layers=-3"}, {"model.layers", "-3"}},
      {{"model.hidden=0"}, {"model.hidden"}},
      {{"parallel.tp=7"}, {"parallel.tp", "does not divide", "128"}},
      {{"gpus=16385"}, {"gpus"}},
      {{"parallel.dp=100"}, {"gpus", "12800"}},
      {{"model.layers=60"}, {"layers"}},
      {{"training.global_batch=2047"}, {"global_batch"}},
      {{"training.schedule=interleavd-1f1b"}, {"training.schedule", "interleaved-1f1b"}},
      {{"training.precision=BF17"}, {"training.precision", "BF16"}},
      {{"software.attention_kernel=fa9"}, {"attention_kernel"}},
      {{"cluster.degraded={gpu:99999 compute_factor:0.5}"}, {"degraded", "99999"}},
      {{"cluster.degraded={gpu:3 compute_factor:0}"}, {"compute_factor"}},
      {{"nonsense"}, {"nonsense"}},
      {{"model.layers=nan"}, {"model.layers"}},
      {{"model.layers=9999999999999999999999"}, {"model.layers"}},
  };
  for (const Case& c : cases) {
    const CommandOutput run = run_command(step_with(c.sets));
    EXPECT_EQ(run.status, kExitBadInput) << c.sets.front();
    EXPECT_EQ(run.out, "") << c.sets.front();
    for (const std::string& text : c.expected) {
      EXPECT_THAT(run.err, HasSubstr(text)) << c.sets.front();
    }
  }
}

TEST(BadInput, all_faults_of_a_scenario_are_reported_at_once) {
  const CommandOutput run =
      run_command(step_with({"model.layers=-3", "training.sequence_length=-1"}));
  EXPECT_EQ(run.status, kExitBadInput);
  EXPECT_THAT(run.err, HasSubstr("model.layers"));
  EXPECT_THAT(run.err, HasSubstr("training.sequence_length"));
}

TEST(BadInput, a_schedule_that_would_deadlock_is_refused) {
  const CommandOutput run = run_command(step_with({"training.consecutive_micro_batches=3"}));
  EXPECT_EQ(run.status, kExitBadInput);
  EXPECT_THAT(run.err, HasSubstr("consecutive"));
}

TEST(BadInput, files_that_are_no_scenario_exit_with_2) {
  const Scratch scratch;
  std::string garbage(10'000'000, '\0');
  uint64_t state = 1;
  for (char& c : garbage) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    c = static_cast<char>(state >> 56);
  }
  const std::vector<std::string> files = {
      scratch.file("empty.textproto", ""),
      scratch.file("binary.textproto", std::string("\x00\xff\x7f\x45LF", 6)),
      scratch.file("garbage.textproto", garbage),
      scratch.file("zeros.textproto", std::string(1'000'000, '\0')),
      scratch.file("deep.textproto", std::string(100'000, '{')),
      scratch.file("deep.json", std::string(100'000, '[')),
      scratch.file("wrong_type.json", R"({"gpus": {"a": [1]}, "model": 3})"),
      scratch.file("unknown.json", R"({"gpu_count": 8})"),
      scratch.file("half.textproto", "name: \"x\"\nmodel { base: \"llama3-8b\""),
      scratch.path(),
      scratch.path() + "/absent.textproto",
  };
  for (const std::string& file : files) {
    const CommandOutput run = run_command({"step", file});
    EXPECT_EQ(run.status, kExitBadInput) << file;
    EXPECT_NE(run.err, "") << file;
    EXPECT_LT(run.err.size(), 100'000U) << file << ": a message is no copy of the input";
  }
}

TEST(BadInput, places_in_files_are_line_and_column) {
  const Scratch scratch;
  const std::string file = scratch.file("place.textproto",
                                        "name: \"x\"\n"
                                        "model { base: \"llama3-8b\" }\n"
                                        "cluster { base: \"meta-roce-24k\" }\n"
                                        "profile { base: \"h100-sxm5-80gb\" }\n"
                                        "gpus: 8\n"
                                        "paralel { tp: 8 }\n");
  const CommandOutput run = run_command({"step", file});
  EXPECT_EQ(run.status, kExitBadInput);
  EXPECT_THAT(run.err, HasSubstr(file + ":6:"));
  EXPECT_THAT(run.err, HasSubstr("parallel"));
}

TEST(BadInput, command_lines_that_say_nothing_sensible_exit_with_2) {
  const std::vector<std::vector<std::string>> lines = {
      {"stpe", "llama3-405b-16384"},
      {"step"},
      {"step", "llama3-405b-16384", "extra"},
      {"step", "llama3-405b-16384", "--formt", "json"},
      {"step", "llama3-405b-16384", "--format", "yaml"},
      {"step", "llama3-405b-16384", "--require", "mfu"},
      {"step", "llama3-405b-16384", "--require", "mfuu>=0.1"},
      {"step", "llama3-405b-16384", "--require", "mfu>=nan"},
      {"run", "llama3-405b-16384", "--days", "nan"},
      {"rates", "llama3-405b-16384", "--step-s", "nan"},
      {"plan", "--formulas", "--model", "llama3-8b", "--tokens", "1e12", "--gpus", "64", "--mfu", "nan"},
      {"run", "llama3-405b-16384", "--days", "100", "--require", "tokens>=many"},
      {"step", "llama3-405b-16384", "--trace", "/nonexistent/x.pftrace"},
      {"step", "llama3-405b-16384", "--trace", "x.pftrace", "--trace-ranks", "5-2"},
      {"step", "llama3-405b-16384", "--trace", "x.pftrace", "--trace-ranks", "16384"},
      {"step", "llama3-405b-16384", "--db", "/nonexistent/x.db"},
      {"report", "/nonexistent/x.db"},
      {"report", "/etc/passwd"},
      {"report", "x.db", "--set", "gpus=8"},
      {"compare", "llama3-405b-16384"},
      {"catalog", "modles"},
      {"catalog", "--set", "gpus=8"},
      {"man", "step", "--format", "json"},
      {"step", "llama3-405b-16384", "--seed", "-1"},
      {"step", "llama3-405b-16384", "--seed", "18446744073709551616"},
      {"step", "llama3-405b-16384", "--seed", ""},
      {"step", "llama3-405b-16384", "--db", ""},
      {"step", "llama3-405b-16384", "--trace", ""},
      {"step", "llama3-405b-16384", "--trace-ranks", "3"},
      {"step", "llama3-405b-16384", "--trace-budget", "5MB"},
      {"step", "llama3-405b-16384", "--set", "cluster.placement=RANK_MAP", "--set", "cluster.rank_map=."},
      {"run", "llama3-405b-16384", "-o", "x.dot"},
      {"run", "llama3-405b-16384", "--days", "3", "--tokens", "1e12"},
      {"topology", "meta-roce-24k", "--no-fold"},
      {"validate", "--table", "."},
      {"validate", "--table", "x.csv", "--suite", "steps"},
      {"validate", "--set", "software.clock_factor=0.9"},
      {"profile", "import", "nccl-tests", "."},
      {"profile", "check", "h100-sxm5-80gb", "."},
      {"help", "everything"},
  };
  for (const auto& line : lines) {
    const CommandOutput run = run_command(line);
    EXPECT_EQ(run.status, kExitBadInput) << testing::PrintToString(line);
    EXPECT_NE(run.err, "") << testing::PrintToString(line);
    EXPECT_EQ(run.out, "") << testing::PrintToString(line);
  }
  EXPECT_THAT(run_command({"stpe"}).err, HasSubstr("did you mean \"step\"?"));
}

TEST(BadInput, what_is_wrong_with_a_command_line_is_named) {
  const auto said = [](const std::vector<std::string>& line) { return run_command(line).err; };
  EXPECT_THAT(said({"step", "llama3-8b-1024", "--threads", "4"}),
              testing::StartsWith("--threads: is no option of 'herdsim step'; allowed: -h, --help, --set"));
  EXPECT_THAT(said({"step", "llama3-8b-1024", "--trce", "x"}), HasSubstr("did you mean \"--trace\"?"));
  EXPECT_THAT(said({"step", "llama3-8b-1024", "--set", "--x", "other"}),
              HasSubstr("\"other\" is one operand too many; allowed: herdsim step [OPTIONS] SCENARIO"));
  EXPECT_THAT(said({"step", "llama3-8b-1024", "--format", "xml"}),
              HasSubstr("--format: \"xml\" is no format; allowed: table, json, csv"));
  // Of one value one fault, not what the parser makes of its rest.
  EXPECT_EQ(said({"step", "llama3-8b-1024", "--set", "gpus=8GPUs"}),
            "--set gpus=8GPUs: gpus: Need space between number and identifier\n");
}

// Two options that share a bit would come together.
TEST(BadInput, every_kind_of_option_is_a_bit_of_its_own) {
  uint32_t seen = 0;
  for (const OptionFlag flag : {kSeed, kDb, kTrace, kFold, kThreads, kRequire, kEffective, kHorizon, kOutput, kSuite, kSweepAxes,
                                kTable, kPlan, kTimeline, kSizes, kDrawing, kConditions, kNoSets, kNoFormat}) {
    EXPECT_EQ(seen & flag, 0U) << flag;
    seen |= flag;
  }
  for (const Command& command : commands()) EXPECT_EQ(command.options & ~seen, 0U) << command.name << ": a flag that is not listed here";
}

TEST(BadInput, a_model_whose_state_does_not_fit_gets_no_speed) {
  const std::vector<std::string> sets = {
      "model={base:\"llama3-70b\"}", "gpus=8", "parallel.tp=8", "parallel.pp=1", "parallel.dp=1",
      "parallel.virtual_stages=1", "training.schedule=1f1b", "training.global_batch=8",
      "recovery.spares=0"};
  CommandOutput run = run_command(step_with(sets));
  EXPECT_EQ(run.status, kExitBadInput);
  EXPECT_THAT(run.err, HasSubstr("does not fit"));
  EXPECT_THAT(run.err, HasSubstr("no plan fits"));
  EXPECT_THAT(run.err, HasSubstr("GPUs or more hold it"));
  std::vector<std::string> anyway = step_with(sets);
  anyway.push_back("--ignore-memory");
  run = run_command(anyway);
  EXPECT_EQ(run.status, kExitDone) << run.err;
}

}  // namespace
}  // namespace herdsim
