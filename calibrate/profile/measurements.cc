#include "calibrate/profile/measurements.h"

#include <array>
#include <optional>
#include <utility>

#include "calibrate/profile/csv_table.h"
#include "sim/base/read_file.h"

namespace herdsim {
namespace {

struct Named {
  std::string_view name;
  size_t value;
};

// The value of one of a few words; a fault that lists them otherwise.
template <size_t N>
size_t word(const CsvTable& table, size_t row, size_t column, const std::array<Named, N>& words,
            Faults& faults) {
  std::string allowed;
  for (const Named& w : words) {
    if (table.cell(row, column) == w.name) return w.value;
    allowed += (allowed.empty() ? "" : ", ") + std::string(w.name);
  }
  table.fault(row, column, "\"" + table.cell(row, column) + "\" is unknown", allowed, faults);
  return words[0].value;
}

constexpr std::array<Named, 8> kDataTypes = {{{"bf16", 0},
                                              {"bfloat16", 0},
                                              {"fp8", 1},
                                              {"fp8_block", 1},
                                              {"fp16", 2},
                                              {"float16", 2},
                                              {"half", 2},
                                              {"fp32", 3}}};
constexpr std::array<Named, 3> kGemmPasses = {{{"forward", 0}, {"dgrad", 1}, {"wgrad", 2}}};
constexpr std::array<Named, 4> kAttentionPasses = {
    {{"forward", 0}, {"fwd", 0}, {"backward", 1}, {"bwd", 1}}};
constexpr std::array<Named, 4> kMasks = {{{"1", 1}, {"true", 1}, {"0", 0}, {"false", 0}}};
constexpr std::array<Named, 3> kStreams = {{{"fused", 0}, {"framework", 1}, {"optimizer", 2}}};
constexpr std::array<Named, 4> kCopies = {
    {{"to_device", 0}, {"to_host", 1}, {"peer", 2}, {"peer_both_ways", 3}}};
constexpr std::array<Named, 7> kCollectives = {{{"all_reduce", 0},
                                                {"all_gather", 1},
                                                {"reduce_scatter", 2},
                                                {"all_to_all", 3},
                                                {"alltoall", 3},
                                                {"send_recv", 4},
                                                {"sendrecv", 4}}};
constexpr std::array<std::string_view, 5> kKinds = {"all_reduce", "all_gather", "reduce_scatter",
                                                    "all_to_all", "send_recv"};

// Reads the cells of one row by column name.
class Row {
 public:
  Row(const CsvTable& table, size_t row, Faults& faults)
      : table_(table), row_(row), faults_(faults) {}
  double number(std::string_view column) const {
    return table_.positive_number(row_, *table_.column(column), faults_);
  }
  int64_t count(std::string_view column) const { return static_cast<int64_t>(number(column)); }
  std::string text(std::string_view column) const {
    return table_.cell(row_, *table_.column(column));
  }
  template <size_t N>
  size_t one_of(std::string_view column, const std::array<Named, N>& words,
                size_t otherwise) const {
    const std::optional<size_t> at = table_.column(column);
    return at ? word(table_, row_, *at, words, faults_) : otherwise;
  }
  double seconds() const {
    if (table_.column("latency_ms")) return number("latency_ms") * 1e-3;
    if (table_.column("time_us")) return number("time_us") * 1e-6;
    return number("time_s");
  }

 private:
  const CsvTable& table_;
  size_t row_;
  Faults& faults_;
};

bool has_all(const CsvTable& table, std::initializer_list<std::string_view> names) {
  return std::all_of(names.begin(), names.end(),
                     [&](std::string_view name) { return table.column(name).has_value(); });
}

GemmMeasurement gemm_row(const Row& row) {
  const GemmShape shape{.m = row.count("m"),
                        .n = row.count("n"),
                        .k = row.count("k"),
                        .dtype = static_cast<DataType>(row.one_of("dtype", kDataTypes, 0)),
                        .pass = static_cast<GemmPass>(row.one_of("pass", kGemmPasses, 0))};
  return {shape, row.text("dtype"), row.seconds()};
}

AttentionMeasurement attention_row(const Row& row) {
  const AttentionShape shape{
      .batch = row.count("batch"),
      .query_tokens = row.count("seqlen"),
      .kv_tokens = row.count("seqlen"),
      .heads = row.count("q_heads"),
      .kv_heads = row.count("kv_heads"),
      .head_dim = row.count("head_dim"),
      .mask_fraction = row.one_of("causal", kMasks, 1) == 1 ? 0.5 : 1.0,
      .pass = static_cast<AttentionPass>(row.one_of("pass", kAttentionPasses, 0))};
  return {shape, row.text("kernel"), row.seconds()};
}

StreamMeasurement stream_row(const Row& row) {
  return {{Bytes(row.count("bytes")), static_cast<StreamClass>(row.one_of("class", kStreams, 0))},
          row.seconds()};
}

CopyMeasurement copy_row(const Row& row) {
  return {static_cast<CopyMeasurement::Kind>(row.one_of("copy", kCopies, 0)),
          Bytes(row.count("bytes")), row.seconds()};
}

CollectiveMeasurement collective_row(const Row& row, bool has_nodes, bool has_dtype) {
  return {.kind = std::string(kKinds[row.one_of("op", kCollectives, 0)]),
          .ranks = row.count("gpus"),
          .nodes = has_nodes ? row.count("nodes") : 1,
          .size = Bytes(row.count("bytes")),
          .seconds = row.seconds(),
          .dtype = has_dtype ? row.text("dtype") : ""};
}

}  // namespace

Measurements read_measurements_csv(std::string_view text, const std::string& file) {
  const CsvTable table(text, file);
  Faults faults;
  Measurements out;
  const bool timed =
      table.column("latency_ms") || table.column("time_us") || table.column("time_s");
  const bool gemm = has_all(table, {"dtype", "m", "n", "k"});
  const bool attention =
      has_all(table, {"kernel", "batch", "seqlen", "q_heads", "kv_heads", "head_dim"});
  const bool stream = has_all(table, {"class", "bytes"});
  const bool copy = has_all(table, {"copy", "bytes"});
  const bool collective = has_all(table, {"op", "gpus", "bytes"});
  if (!timed || !(gemm || attention || stream || copy || collective)) {
    throw SpecError(
        {{.file = file,
          .line = 1,
          .column = 1,
          .problem = timed ? "the columns fit no kind of measurement" : "no column holds a time",
          .allowed = "latency_ms, time_us or time_s, and dtype,m,n,k or kernel,batch,seqlen,"
                     "q_heads,kv_heads,head_dim or class,bytes or copy,bytes or op,gpus,bytes"}});
  }
  const bool has_nodes = table.column("nodes").has_value();
  const bool has_dtype = table.column("dtype").has_value();
  for (size_t i = 0; i < table.rows(); ++i) {
    const Row row(table, i, faults);
    if (gemm) {
      out.gemm.push_back(gemm_row(row));
    } else if (attention) {
      out.attention.push_back(attention_row(row));
    } else if (stream) {
      out.stream.push_back(stream_row(row));
    } else if (copy) {
      out.copy.push_back(copy_row(row));
    } else {
      out.collective.push_back(collective_row(row, has_nodes, has_dtype));
    }
  }
  faults.throw_if_any();
  return out;
}

std::string read_text_file(const std::string& path) {
  return read_file(path);
}

}  // namespace herdsim
