#include "tests/tools/scenario/scenario_text.h"

#include <sstream>

#include "tools/scenario/load_scenario.h"

namespace herdsim {

const char kLargeScenario[] = R"(model { base: "llama3-405b" }
cluster { base: "meta-roce-24k" }
profile { base: "h100-sxm5-80gb" }
software { base: "meta-llama3" }
gpus: 16384
parallel { tp: 8 pp: 16 virtual_stages: 8 shard: FSDP_KEEP }
training {
  sequence_length: 8192
  global_batch: 2048
  schedule: "interleaved-1f1b"
}
)";

std::vector<Fault> fault_list(const std::string& text, const std::vector<std::string>& sets) {
  try {
    load_scenario_text(text, "mine.textproto", sets);
  } catch (const SpecError& error) {
    return error.faults();
  }
  return {};
}

std::string faults_of(const std::string& text, const std::vector<std::string>& sets) {
  std::string all;
  for (const Fault& fault : fault_list(text, sets)) all += fault.text() + "\n";
  return all;
}

std::string without_comments(const std::string& text) {
  std::istringstream lines(text);
  std::string out;
  for (std::string line; std::getline(lines, line);) {
    line = line.substr(0, line.find(" #"));
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

}  // namespace herdsim
