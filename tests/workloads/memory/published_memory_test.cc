// Against 258 jobs that printed their memory: the grid of nanotron's scaling benchmark, H100, 1.3B
// to 469B.
//
// `alloc` is close to the state after the step (a micro-batch of 8 instead of 1 moves it by half a
// gigabyte), so it is compared with the state alone. `reserved` is the allocator's high-water mark
// and is compared with the peak; near the end of memory the allocator gives blocks back and it says
// nothing, so rows above 60 GiB are left out.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "workloads/memory/memory_footprint.h"

namespace herdsim {
namespace {

using Row = std::map<std::string, std::string>;

// RFC 4180 fields of one record; no field of this table has a line break.
std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (const char c : line) {
    if (c == '"') {
      quoted = !quoted;
    } else if (c == ',' && !quoted) {
      fields.emplace_back();
    } else if (c != '\r') {
      fields.back() += c;
    }
  }
  return fields;
}

std::vector<Row> published_rows() {
  std::ifstream file(std::string(HERDSIM_SOURCE_DIR) +
                     "/../shared/data/published/published_runs.csv");
  std::vector<Row> rows;
  std::string line;
  if (!std::getline(file, line)) return rows;
  const std::vector<std::string> names = fields_of(line);
  while (std::getline(file, line)) {
    const std::vector<std::string> fields = fields_of(line);
    Row row;
    for (size_t i = 0; i < names.size() && i < fields.size(); ++i) row[names[i]] = fields[i];
    rows.push_back(std::move(row));
  }
  return rows;
}

int64_t count(const Row& row, const std::string& column) {
  return std::llround(std::stod(row.at(column)));
}

struct Predicted {
  double state = 0, peak = 0;  // GiB
};

Predicted predict(const Row& row) {
  ModelArchitecture model;
  model.layers = count(row, "layers");
  model.hidden = count(row, "hidden");
  model.ffn = count(row, "ffn");
  model.heads = count(row, "heads");
  model.kv_heads = count(row, "kv_heads");
  model.head_dim = count(row, "head_dim");
  model.vocab = count(row, "vocab");
  model.tied_embeddings = true;
  ParallelPlan plan{.tp = count(row, "tp"), .pp = count(row, "pp"), .dp = count(row, "dp")};
  plan.sequence_parallel = row.at("sp") == "1";
  plan.micro_batch = count(row, "micro_batch");
  const bool zero_1 = row.at("fsdp_zero") == "ZeRO-1";
  plan.shard = zero_1 ? Sharding::kZero1 : Sharding::kNone;
  plan.layers_per_chunk = layers_by_cost(model, plan.pp);
  const Training training{.sequence_length = count(row, "seq_len"),
                          .global_batch = count(row, "global_batch")};
  // As catalog/software/nanotron.textproto says.
  SoftwareStack software;
  software.activation_hidden_bytes = 22;
  software.activation_ffn_bytes = 8;
  software.gradient_copy_bytes = 2;
  software.transfer_tensors_in_flight = 40;
  software.p2p_async = false;
  MemoryAssumptions assumptions;
  // The columns are the caching allocator's own: no device context and no communicators.
  assumptions.device_context = Bytes();
  assumptions.communicator = Bytes();
  // After the step: gradient buckets of data parallelism and ZeRO-1's gather buffer, in bf16.
  const double left = (plan.dp > 1 ? 2 : 0) + (zero_1 ? 2 : 0);

  const ScheduleRow& schedule = *find_schedule("1f1b");
  const ScheduleShape shape{plan.pp, count(row, "grad_accum")};
  const std::vector<StageLayout> layouts = layout_stages(model, plan, schedule);
  Predicted result;
  for (const StageMemory& m :
       memory_footprint({model, plan, training, software, schedule, shape, layouts, assumptions})) {
    const auto gib = [](Bytes b) { return static_cast<double>(b.count()) / (1 << 30); };
    const double parameters =
        stage_parameters(model, plan, layouts[static_cast<size_t>(m.stage)]).total();
    const double buffers = (left - software.gradient_copy_bytes) * parameters / (1 << 30);
    result.state = std::max(result.state, gib(m.weights + m.gradients + m.optimizer) + buffers);
    result.peak = std::max(result.peak, gib(m.peak));
  }
  return result;
}

struct Errors {
  std::vector<double> values;

  double quantile(double q) const {
    std::vector<double> sorted;
    for (const double v : values) sorted.push_back(std::abs(v));
    std::sort(sorted.begin(), sorted.end());
    return sorted[static_cast<size_t>(q * static_cast<double>(sorted.size() - 1))];
  }
  double bias() const {
    std::vector<double> sorted = values;
    std::sort(sorted.begin(), sorted.end());
    return sorted[sorted.size() / 2];
  }
};

void print(const std::string& what, const Errors& e) {
  std::printf("%-28s %4zu rows  median %5.1f %%  p90 %5.1f %%  bias %+5.1f %%\n", what.c_str(),
              e.values.size(), 100 * e.quantile(0.5), 100 * e.quantile(0.9), 100 * e.bias());
}

TEST(PublishedMemory, state_and_peak_of_nanotrons_grid_are_near_what_the_jobs_printed) {
  const std::vector<Row> rows = published_rows();
  if (rows.empty()) GTEST_SKIP() << "no published_runs.csv beside the checkout";
  std::map<std::string, Errors> state, peak;
  for (const Row& row : rows) {
    if (row.at("software") != "nanotron" || row.at("peak_mem_alloc_GB").empty()) continue;
    const Predicted p = predict(row);
    const std::string split = row.at("split") + (row.at("pp") == "1" ? ", PP 1" : ", PP > 1");
    state[split].values.push_back(p.state / std::stod(row.at("peak_mem_alloc_GB")) - 1);
    const double reserved = std::stod(row.at("peak_mem_reserved_GB"));
    if (reserved < 60) peak[split].values.push_back(p.peak / reserved - 1);
  }
  ASSERT_EQ(state.size(), 4u);
  for (const auto& [split, errors] : state) print("state, " + split, errors);
  for (const auto& [split, errors] : peak) print("peak, " + split, errors);
  for (const char* pp : {"validate, PP 1", "validate, PP > 1"}) {
    EXPECT_LT(state[pp].quantile(0.5), 0.07) << pp;
    EXPECT_LT(state[pp].quantile(0.9), 0.34) << pp;
  }
  EXPECT_LT(peak["validate, PP 1"].quantile(0.5), 0.06);
  EXPECT_LT(peak["validate, PP 1"].quantile(0.9), 0.13);
  EXPECT_LT(peak["validate, PP > 1"].quantile(0.5), 0.10);
  EXPECT_LT(peak["validate, PP > 1"].quantile(0.9), 0.37);
}

}  // namespace
}  // namespace herdsim
