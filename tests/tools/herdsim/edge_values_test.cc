// Every number of the scenario language at the ends of its range and inside it, one at a time: the
// program answers, and the answer is sound, or it says what is wrong. A field that is added is
// tested without writing a test.
#include <gtest/gtest.h>
#include <unistd.h>

#include <charconv>
#include <cmath>
#include <csignal>
#include <cstring>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>
#include <string>
#include <string_view>

#include "tests/tools/herdsim/run_command.h"
#include "tools/scenario/load_scenario.h"

namespace herdsim {
namespace {

using Sets = std::vector<std::string>;

struct NumberField {
  std::string path;
  bool is_whole = false;
  double low = 0, high = 0;  // what help says; `low` may be excluded
  bool above_low = false;
};

double number_after(const std::string& text, std::string_view word) {
  const size_t at = text.find(word);
  double value = std::nan("");
  if (at != std::string::npos) {
    std::from_chars(text.data() + at + word.size(), text.data() + text.size(), value);
  }
  return value;
}

// From the help, which is printed from the definition of the language.
std::vector<NumberField> number_fields() {
  std::vector<NumberField> fields;
  std::istringstream lines(scenario_language_help());
  std::string path;
  for (std::string line; std::getline(lines, line);) {
    if (line.size() < 3 || line[0] != ' ') continue;
    std::istringstream words(line);
    if (line[2] != ' ') words >> path;
    std::string facts;
    std::getline(words >> std::ws, facts);
    const bool list = facts.starts_with("list of ");
    if (list) facts.erase(0, std::strlen("list of "));
    const bool whole = facts.starts_with("whole number, ");
    if (path.empty() || !(whole || facts.starts_with("number, "))) continue;
    NumberField field{.path = path, .is_whole = whole, .high = number_after(facts, " up to ")};
    field.above_low = facts.find("above ") != std::string::npos;
    field.low = number_after(facts, field.above_low ? "above " : "from ");
    if (!std::isnan(field.low) && !std::isnan(field.high)) fields.push_back(field);
    path.clear();
  }
  return fields;
}

std::vector<std::string> values_of(const NumberField& field) {
  const double tiny = field.is_whole ? 1 : 1e-6;
  const double low = field.above_low ? field.low + field.high * 1e-12 : field.low;
  const double middle = std::sqrt(std::max(low, tiny) * field.high);
  std::vector<std::string> values;
  for (const double value : {low, 7.0, middle, field.high}) {
    if (value < low || value > field.high) continue;
    values.push_back(field.is_whole ? std::to_string(static_cast<int64_t>(value))
                                    : nlohmann::json(value).dump());
  }
  return values;
}

// Up to which a value is tried where larger ones take long: machines of millions of GPUs, thousands
// of layers or replicas, more failures and conditions of the machine than a test has time for.
double most_tried(const std::string& path) {
  static const std::map<std::string, double> most = {{"cluster.gpus", 65536},
                                                     {"model.layers", 1000},
                                                     {"run.replicas", 10},
                                                     {"reliability.classes.rate_per_hour", 0.1},
                                                     {"reliability.classes.scale", 1000},
                                                     {"reliability.slow.rate_per_hour", 0.1},
                                                     {"reliability.slow.scale", 10}};
  const auto row = most.find(path);
  return row == most.end() ? std::numeric_limits<double>::infinity() : row->second;
}

// Elements of lists, and what has to be there for them.
struct InList {
  std::string prefix, element;
  Sets context;
};

const InList kInLists[] = {
    {"reliability.classes.", "reliability.classes.faulty_gpu.", {}},
    {"reliability.slow.", "reliability.slow.fail_slow_compute.", {}},
    {"cluster.degraded.", "cluster.degraded.0.", {"cluster.degraded={gpu: 1 nic_factor: 0.5}"}},
    {"other_jobs.",
     "other_jobs.0.",
     {"other_jobs={scenario: \"llama3-8b-1024\" set: \"gpus=8\" set: \"parallel.dp=8\" set: "
      "\"model.layers=2\" set: \"training.global_batch=8\" set: \"recovery.spares=0\"}"}},
};

// What runs: small, and with as much of everything as there is.
const Sets kDense = {"gpus=16",
                     "cluster.gpus=64",
                     "model.layers=4",
                     "parallel.tp=2",
                     "parallel.pp=2",
                     "parallel.dp=4",
                     "parallel.virtual_stages=2",
                     "parallel.shard=ZERO1",
                     "training.schedule=interleaved-1f1b",
                     "training.sequence_length=512",
                     "training.global_batch=16",
                     "training.recompute=FULL",
                     "software.tp_overlap=CHUNKED",
                     "recovery.spares=1",
                     "reliability.rate_scale=100"};
const Sets kExperts = {"gpus=16",
                       "cluster.gpus=64",
                       "model.layers=4",
                       "model.experts=8",
                       "model.experts_per_token=2",
                       "model.shared_experts=1",
                       "parallel.dp=16",
                       "parallel.ep=4",
                       "parallel.shard=ZERO2",
                       "training.precision=FP8",
                       "training.sequence_length=512",
                       "training.global_batch=32",
                       "training.documents={mean_tokens: 100}",
                       "software.expert_dispatch_once=true",
                       "recovery.spares=0",
                       "reliability.base=shared-fleet"};

// Shown where the program itself ends.
char running[512];

extern "C" void show_and_die(int signal) {
  for (const std::string_view text : {std::string_view("\nended by a signal: "),
                                      std::string_view(running), std::string_view("\n")}) {
    if (write(2, text.data(), text.size()) < 0) break;
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

void expect_sound(const CommandOutput& run, const std::string& what) {
  ASSERT_TRUE(run.status == kExitDone || run.status == kExitBadInput)
      << what << ": " << run.status << " " << run.err;
  if (run.status == kExitBadInput) {
    EXPECT_EQ(run.out, "") << what;
    EXPECT_NE(run.err.find(": "), std::string::npos) << what << ": " << run.err;
    return;
  }
  const nlohmann::json answer = nlohmann::json::parse(run.out, nullptr, false);
  ASSERT_FALSE(answer.is_discarded()) << what << ": " << run.out;
  double sum = 0;
  for (const auto& [term, seconds] : answer["time_account_s"].items()) {
    EXPECT_GE(seconds.get<double>(), 0) << what << " " << term;
    sum += seconds.get<double>();
  }
  const double whole = answer.value("horizon_s", answer.value("step_time_s", std::nan("")));
  EXPECT_NEAR(sum / whole, 1, 1e-6) << what;
}

void expect_sound_for_all(const std::string& scenario, const Sets& base) {
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE}) std::signal(signal, &show_and_die);
  for (const NumberField& field : number_fields()) {
    std::string path = field.path;
    Sets sets = base;
    for (const InList& list : kInLists) {
      if (!path.starts_with(list.prefix)) continue;
      path = list.element + path.substr(list.prefix.size());
      sets.insert(sets.end(), list.context.begin(), list.context.end());
    }
    const bool is_of_weeks = path.starts_with("reliability.") || path.starts_with("checkpoint.") ||
                             path.starts_with("recovery.") || path.starts_with("run.");
    for (const std::string& value : values_of(field)) {
      if (std::stod(value) > most_tried(field.path)) continue;
      std::vector<std::string> line = {is_of_weeks ? "run" : "step", scenario, "--format", "json",
                                       "--quiet"};
      if (is_of_weeks) {
        line.insert(line.end(), {"--days", "2", "--replicas", "1", "--threads", "1"});
      } else {
        line.push_back("--ignore-memory");
      }
      sets.push_back(path + "=" + value);
      for (const std::string& set : sets) line.insert(line.end(), {"--set", set});
      std::strncpy(running, sets.back().c_str(), sizeof running - 1);
      expect_sound(run_command(line), sets.back());
      sets.pop_back();
    }
  }
  for (const int signal : {SIGABRT, SIGSEGV, SIGFPE}) std::signal(signal, SIG_DFL);
}

TEST(EdgeValues, the_help_names_every_number) { EXPECT_GT(number_fields().size(), 180U); }

TEST(EdgeValues, of_a_dense_model_in_a_pipeline_give_an_answer_or_a_fault) {
  expect_sound_for_all("llama3-8b-1024", kDense);
}

TEST(EdgeValues, of_a_model_of_experts_give_an_answer_or_a_fault) {
  expect_sound_for_all("llama3-8b-1024", kExperts);
}

}  // namespace
}  // namespace herdsim
