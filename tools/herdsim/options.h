// What a command line said, whatever the command: each command reads what its row in the table declares.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace herdsim {

enum class OutputFormat : uint8_t { kTable, kJson, kCsv };

struct Options {
  std::vector<std::string> names;  // positional: scenarios, files, sub-commands, as the command says
  std::vector<std::string> sets;   // --set FIELD.PATH=VALUE
  std::optional<uint64_t> seed;
  OutputFormat format = OutputFormat::kTable;
  std::string db;
  std::string trace;
  std::string trace_ranks;  // "", "all", "0-127,4096"
  std::vector<std::string> require;
  bool no_fold = false;
  bool ignore_memory = false;
  int threads = 0;  // 0: as many as the machine has
  bool quiet = false;
  bool effective = false;
  double days = 0;
  double tokens = 0;
  int64_t replicas = 0;  // 0: as the scenario says
  double step_seconds = 0;  // rates; 0: simulate it
  // plan
  std::string model, cluster, profile, software;
  std::vector<int64_t> gpu_counts;
  int64_t keep = 5;
  double deadline_days = 0, budget_usd = 0, price_usd_per_gpu_hour = 0;  // 0: none
  std::vector<std::string> axes;  // --axis, see tools/study/sweep_axes.h
  std::string table;  // --table, see tools/validation/run_table.h
  std::string output;
  std::string suite;
};

}  // namespace herdsim
