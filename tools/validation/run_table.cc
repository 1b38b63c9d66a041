#include "tools/validation/run_table.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "calibrate/profile/csv_table.h"
#include "sim/base/error.h"
#include "sim/base/read_file.h"
#include "sim/base/text.h"
#include "tools/scenario/load_scenario.h"
#include "tools/validation/source_facts.h"

namespace herdsim {
namespace {

// Counts beyond this are typing errors, and products of two still fit 64 bits. Sizes of models and jobs have the
// bounds that they have in a scenario.
constexpr double kMostCount = 1e9, kMostLayers = 1e5, kMostHidden = 1e7, kMostWidth = 1e8, kMostHeads = 1e6;
constexpr double kMostGpus = 1 << 22;

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// Of a list of "field=value", with ';' between them.
std::vector<std::string> split_sets(std::string_view text) {
  std::vector<std::string> sets;
  while (!text.empty()) {
    const size_t end = std::min(text.find(';'), text.size());
    const std::string_view set = trimmed(text.substr(0, end));
    if (!set.empty()) sets.emplace_back(set);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return sets;
}

// Reads the cells of one row by column name, or what the row's source says in their place; a column
// that the table lacks is blank.
class RowReader {
 public:
  RowReader(const CsvTable& table, size_t row, Faults& faults)
      : table_(table), row_(row), faults_(faults) {
    const std::string_view pp = cell("pp");
    said_ = facts_of_source(cell("source_where"), cell("model"), cell("gpu"), cell("precision"),
                            !pp.empty() && pp != "1");
  }

  const SourceFact* said() const { return said_; }

  void read(std::string_view column, std::string& value) { value = cell_of(column); }

  void read(std::string_view column, std::optional<double>& value) {
    const std::string_view cell = cell_of(column);
    if (cell.empty()) return;
    double number = 0;
    const auto [end, error] = std::from_chars(cell.data(), cell.data() + cell.size(), number);
    const bool whole_cell = error == std::errc() && end == cell.data() + cell.size();
    if (!whole_cell || !std::isfinite(number) || number <= 0) {
      return fault(column, cell, "is no positive number", "above 0, or blank");
    }
    value = number;
  }

  void read(std::string_view column, std::optional<int64_t>& value, double most = kMostCount) {
    std::optional<double> number;
    read(column, number);
    if (!number) return;
    if (*number != std::floor(*number) || *number > most) {
      return fault(column, text(column), "is no count",
                   "a whole number up to " + count_text(static_cast<int64_t>(most)) + ", or blank");
    }
    value = static_cast<int64_t>(*number);
  }

  void read(std::string_view column, std::optional<bool>& value) {
    const std::string_view cell = cell_of(column);
    if (cell.empty()) return;
    if (cell == "0" || cell == "1") {
      value = cell == "1";
    } else {
      fault(column, cell, "is neither yes nor no", "0, 1 or blank");
    }
  }

  void read(std::string_view column, std::vector<std::string>& sets) {
    sets = split_sets(cell_of(column));
    try {
      // Any record: all have the same fields.
      if (!sets.empty()) load_software("megatron-te", sets);
    } catch (const SpecError& error) {
      const Fault& first = error.faults().front();
      fault(column, text(column), first.field + ": " + first.problem, first.allowed);
    }
  }

  // Of the table, whatever else is in it.
  std::string_view notes() const { return cell("notes"); }

  // The cells read since the last call, one after another.
  std::string take_cells() { return std::exchange(cells_, {}); }

 private:
  std::string_view cell_of(std::string_view column) {
    constexpr char kBetween = '\n';
    const std::string_view cell = text(column);
    (cells_ += cell) += kBetween;
    return cell;
  }
  std::string_view text(std::string_view column) const {
    if (said_ != nullptr) {
      for (const auto& [name, value] : said_->cells) {
        if (name == column) return value;
      }
    }
    return cell(column);
  }
  std::string_view cell(std::string_view column) const {
    const std::optional<size_t> index = table_.column(column);
    return index ? trimmed(table_.cell(row_, *index)) : std::string_view{};
  }
  void fault(std::string_view column, std::string_view cell, std::string_view problem,
             std::string allowed) const {
    table_.fault(row_, *table_.column(column),
                 "\"" + std::string(cell.substr(0, 60)) + "\" " + std::string(problem),
                 std::move(allowed), faults_);
  }

  const CsvTable& table_;
  const size_t row_;
  Faults& faults_;
  const SourceFact* said_ = nullptr;
  std::string cells_;
};

// What stands in brackets behind these words of the notes: "layers per stage (from the file) [4, 4,
// 5, 3]".
std::string layers_per_stage_in(std::string_view notes) {
  const size_t words = notes.find("layers per stage");
  const size_t open = notes.find('[', std::min(words, notes.size()));
  const size_t close = notes.find(']', std::min(open, notes.size()));
  if (close == std::string_view::npos) return {};
  return std::string(notes.substr(open + 1, close - open - 1));
}

RunRow read_row(RowReader r) {
  RunRow row;
  r.read("id", row.id);
  r.read("source_where", row.source_where);
  r.take_cells();
  r.read("software", row.software);
  r.read("model", row.model);
  r.read("gpu", row.gpu);
  r.read("layers", row.layers, kMostLayers);
  r.read("hidden", row.hidden, kMostHidden);
  r.read("ffn", row.ffn, kMostWidth);
  r.read("mlp_gated", row.mlp_gated);
  r.read("params_B", row.billion_parameters);
  r.read("heads", row.heads, kMostHeads);
  r.read("kv_heads", row.kv_heads, kMostHeads);
  r.read("head_dim", row.head_dim, kMostLayers);
  r.read("vocab", row.vocab, kMostWidth);
  r.read("seq_len", row.seq_len, kMostWidth);
  r.read("experts", row.experts);
  r.read("experts_per_token", row.experts_per_token);
  r.read("shared_experts", row.shared_experts);
  r.read("expert_ffn", row.expert_ffn);
  r.read("expert_capacity", row.expert_capacity);
  r.read("num_gpus", row.num_gpus, kMostGpus);
  r.read("gpus_per_node", row.gpus_per_node);
  r.read("tp", row.tp);
  r.read("sp", row.sp);
  r.read("cp", row.cp);
  r.read("pp", row.pp);
  r.read("vp", row.vp);
  r.read("ep", row.ep);
  r.read("dp", row.dp);
  r.read("fsdp_zero", row.fsdp_zero);
  r.read("micro_batch", row.micro_batch);
  r.read("global_batch", row.global_batch, kMostWidth);
  r.read("precision", row.precision);
  r.read("recompute", row.recompute);
  r.read("attention_kernel", row.attention_kernel);
  r.read("pp_schedule", row.pp_schedule);
  r.read("overlap_notes", row.overlap_notes);
  r.read("interconnect", row.interconnect);
  r.read("layers_per_stage", row.layers_per_stage);
  if (row.layers_per_stage.empty()) row.layers_per_stage = layers_per_stage_in(r.notes());
  r.read("software_set", row.software_sets);
  r.read("gpu_power_W", row.gpu_power_watts);
  r.read("hbm_GBps", row.hbm_gigabytes_per_second);
  r.read("net_allreduce_GBps", row.allreduce_gigabytes_per_second);
  r.read("net_allgather_GBps", row.allgather_gigabytes_per_second);
  r.read("net_reducescatter_GBps", row.reducescatter_gigabytes_per_second);
  row.configuration = r.take_cells() + row.layers_per_stage +
                      (r.said() != nullptr ? std::string(r.said()->stated) : "");
  r.read("peak_mem_alloc_GB", row.peak_memory_gigabytes);
  r.read("peak_mem_reserved_GB", row.reserved_gigabytes);
  r.read("target_step_time_s", row.target_step_time_s);
  if (r.said() != nullptr) {
    for (const auto& [column, value] : r.said()->cells) {
      row.by_source.push_back(std::string(column) + " = " + std::string(value));
    }
    row.stated = r.said()->stated;
  }
  return row;
}

}  // namespace

std::vector<RunRow> parse_run_table(std::string_view text, const std::string& file) {
  const CsvTable table(text, file);
  Faults faults;
  for (const std::string_view column : {"id", "software"}) {
    if (table.column(column)) continue;
    faults.add({.file = file,
                .line = 1,
                .problem = "there is no column \"" + std::string(column) + "\"",
                .nearest = nearest_name(column, table.columns())});
  }
  faults.throw_if_any();
  std::vector<RunRow> rows;
  for (size_t r = 0; r < table.rows(); ++r) {
    rows.push_back(read_row(RowReader(table, r, faults)));
    if (rows.back().id.empty()) rows.back().id = "row " + std::to_string(r + 1);
  }
  if (rows.empty()) faults.add({.file = file, .problem = "has no rows", .allowed = "a run a line below the header"});
  faults.throw_if_any();
  return rows;
}

std::vector<RunRow> read_run_table(const std::string& path) {
  return parse_run_table(read_file(path, "--table"), path);
}

}  // namespace herdsim
