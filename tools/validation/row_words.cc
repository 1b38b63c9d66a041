#include "tools/validation/row_words.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <string>
#include <string_view>

#include "sim/base/text.h"

namespace herdsim {
namespace {

bool says(const std::string& text, std::initializer_list<std::string_view> words) {
  for (const std::string_view word : words) {
    if (text.find(word) != std::string::npos) return true;
  }
  return false;
}

// The most specific first: "DDP+dist-optimizer (ZeRO-1)" is no plain DDP, "ZeRO-2-like ... FSDP" no
// ZeRO-3.
std::optional<Sharding> sharding_of(const std::string& text) {
  if (text.empty()) return std::nullopt;
  if (says(text, {"not resharded"})) return Sharding::kFsdpKeep;
  if (says(text, {"shard_grad_op", "zero-2", "stage2"})) return Sharding::kZero2;
  if (says(text, {"zero-3", "full_shard", "fsdp", "hsdp"})) return Sharding::kZero3;
  if (says(text, {"zero-0"})) return Sharding::kNone;
  if (says(text, {"zero", "dist-optimizer", "stage1"})) return Sharding::kZero1;
  if (says(text, {"ddp", "dp", "none"})) return Sharding::kNone;
  return std::nullopt;
}

std::optional<DataType> precision_of(const std::string& text) {
  if (says(text, {"fp8"})) return DataType::kFp8;
  if (says(text, {"bf16"})) return DataType::kBf16;
  if (says(text, {"fp16"})) return DataType::kFp16;
  return std::nullopt;
}

// The number after the first `word`, or `otherwise`.
double number_after(const std::string& text, std::string_view word, double otherwise) {
  const size_t at = text.find(word);
  if (at == std::string::npos) return otherwise;
  double value = otherwise;
  const char* const from = text.data() + at + word.size();
  std::from_chars(from, text.data() + text.size(), value);
  return value;
}

int64_t shard_ranks_of(const std::string& text) {
  const auto ranks = static_cast<int64_t>(number_after(text, "fsdp(", 0));
  if (says(text, {"hsdp", "fsdp+dp"})) return ranks > 0 ? ranks : RowWords::kUnstated;
  return number_after(text, "xdp(", 1) <= 1 ? 0 : ranks;
}

void read_recompute(const std::string& text, int64_t layers, RowWords& words) {
  if (text.starts_with("none")) {
    words.recompute = Recompute::kNone;
  } else if (says(text, {"fraction "})) {
    words.recompute = Recompute::kFull;
    words.recompute_fraction = std::clamp(number_after(text, "fraction ", 1), 0.0, 1.0);
  } else if (says(text, {"every 2nd layer", "(layer)"})) {
    words.recompute = Recompute::kFull;
    words.recompute_fraction = 0.5;
  } else if (text.starts_with("full for ")) {
    words.recompute = Recompute::kFull;
    const double share = number_after(text, "full for ", 0) / static_cast<double>(layers);
    words.recompute_fraction = std::clamp(share, 0.0, 1.0);
  } else if (text.starts_with("full")) {
    words.recompute = Recompute::kFull;
  } else if (says(text, {"except_mlp"})) {
    // MaxText's save_dot_with_context_except_mlp: all products outside the MLP are kept.
    words.recompute = Recompute::kSelective;
    words.recompute_modules = {RecomputeModule::kNorms, RecomputeModule::kMlp};
  } else if (says(text, {"core attention, norms"})) {
    words.recompute = Recompute::kSelective;
    words.recompute_modules = {RecomputeModule::kCoreAttention, RecomputeModule::kNorms,
                               RecomputeModule::kActivation};
  } else if (says(text, {"activation func", "norms"})) {
    words.recompute = Recompute::kElementwise;
  } else if (says(text, {"(op)"})) {
    words.recompute = Recompute::kHalfTheProducts;
  } else if (says(text, {"q,k,v only", "save_qkv_proj"})) {
    words.recompute = Recompute::kKeepQkv;
  } else if (says(text, {"q,k,v,out"})) {
    words.recompute = Recompute::kKeepQkvAndOutput;
  } else if (text.starts_with("selective")) {
    words.recompute = Recompute::kSelective;
  }
}

// All whole numbers of a text, in order.
std::vector<int64_t> whole_numbers(std::string_view text) {
  std::vector<int64_t> numbers;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end;) {
    int64_t value = 0;
    const auto [next, error] = std::from_chars(at, end, value);
    if (error == std::errc()) numbers.push_back(value);
    at = error == std::errc() ? next : at + 1;
  }
  return numbers;
}

}  // namespace

RowWords words_of(const RunRow& row) {
  const std::string overlap = lower_case(row.overlap_notes);
  const bool no_flags = says(overlap, {"without overlap flags"});
  RowWords words{.sharding = sharding_of(lower_case(row.fsdp_zero)),
                 .shard_ranks = shard_ranks_of(lower_case(row.fsdp_zero)),
                 .precision = precision_of(lower_case(row.precision)),
                 .recompute = std::nullopt,
                 .one_chunk_a_stage = lower_case(row.pp_schedule) == "1f1b",
                 .no_tp_overlap = no_flags || says(overlap, {"no tp overlap", "no tp userbuffers"}),
                 .no_dp_overlap = no_flags};
  words.async_tp = says(overlap, {"async tp"}) && !says(overlap, {"async tp linear"});
  // What compiles at all says so; asynchronous TP and float8 of torchtitan need the compiler.
  const bool off = says(overlap, {"no compile", "compile=false"});
  words.compiled =
      !off && (words.async_tp || says(overlap, {"torch.compile", "float8", "te kernels"}));
  words.fp8_by_row = says(lower_case(row.precision), {"rowwise"});
  words.layers_per_stage = whole_numbers(row.layers_per_stage);
  read_recompute(lower_case(row.recompute), row.layers.value_or(1), words);
  return words;
}

std::string letters_and_digits(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (std::isalnum(byte) != 0) out += static_cast<char>(std::tolower(byte));
  }
  return out;
}

}  // namespace herdsim
