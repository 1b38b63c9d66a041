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
  std::string trace_budget = "32MB";
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
  double capital_usd_per_gpu = 0, depreciation_years = 4, usd_per_kwh = 0;
  double memory_gigabytes = 0;  // 0: all the GPU has
  double availability = 0.99;
  bool weak_scaling = false;
  bool formulas = false;
  double flops = 0, mfu = 0, tflops_per_gpu = 0, tokens_per_second_per_gpu = 0, peak_tflops = 0;
  double gpu_hours = 0;
  std::vector<std::string> axes;  // --axis, see tools/study/sweep_axes.h
  bool tornado = false;
  double adaptive = 0;  // half-width of the effective training time; 0: all replicas
  std::string table;  // --table, see tools/validation/run_table.h
  std::string output;
  std::string suite;
  std::string why;  // --why, a row of what validate compares
};

}  // namespace herdsim
