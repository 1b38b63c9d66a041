#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "calibrate/nccl_tests/nccl_tests_parts.h"
#include "sim/base/text.h"

namespace herdsim {
namespace {

enum class Factor : uint8_t { kTwice, kShare, kOne };

struct Kind {
  std::string_view name;
  std::array<std::string_view, 3> spellings;  // in programs and file names
  Factor factor;
};

// alltoallv before alltoall, and all-gathers before gathers: the first spelling found wins.
constexpr std::array<Kind, 11> kKinds = {{
    {"all_reduce", {"all_reduce", "allreduce", "all-reduce"}, Factor::kTwice},
    {"all_gather", {"all_gather", "allgather", "all-gather"}, Factor::kShare},
    {"reduce_scatter", {"reduce_scatter", "reducescatter", "reduce-scatter"}, Factor::kShare},
    {"all_to_all_v", {"alltoallv", "all_to_all_v", "all-to-all-v"}, Factor::kShare},
    {"all_to_all", {"alltoall", "all_to_all", "all-to-all"}, Factor::kShare},
    {"send_recv", {"sendrecv", "send_recv", "send-recv"}, Factor::kOne},
    {"hypercube", {"hypercube", "hypercube", "hypercube"}, Factor::kShare},
    {"broadcast", {"broadcast", "bcast", "broadcast"}, Factor::kOne},
    {"scatter", {"scatter_perf", "scatter_perf", "scatter_perf"}, Factor::kShare},
    {"gather", {"gather_perf", "gather_perf", "gather_perf"}, Factor::kShare},
    {"reduce", {"reduce_perf", "reduce_perf", "reduce_perf"}, Factor::kOne},
}};

int64_t type_bytes(std::string_view type) {
  constexpr std::array<std::pair<std::string_view, int64_t>, 20> kTypes = {
      {{"int8", 1},     {"char", 1},     {"uint8", 1},  {"f8e4m3", 1},  {"f8e5m2", 1},
       {"fp8_e4m3", 1}, {"fp8_e5m2", 1}, {"half", 2},   {"float16", 2}, {"bfloat16", 2},
       {"bf16", 2},     {"int", 4},      {"int32", 4},  {"uint32", 4},  {"float", 4},
       {"float32", 4},  {"int64", 8},    {"uint64", 8}, {"double", 8},  {"float64", 8}}};
  for (const auto& [name, bytes] : kTypes) {
    if (name == type) return bytes;
  }
  return 0;
}

// Elements a rank, where the count is that: size / count / bytes of the type, the same in every
// row. 1 where the count is of the whole size, 0 where rows differ or the type is unknown.
int64_t ranks_by_count(const NcclTest& test) {
  int64_t ranks = 0;
  for (const NcclTestsRow& row : test.rows) {
    const int64_t element = type_bytes(row.type);
    if (row.size <= Bytes() || row.count <= 0 || element == 0) continue;
    if (row.size.count() % element != 0) return 0;
    const int64_t elements = row.size.count() / element;
    if (elements % row.count != 0) return 0;
    const int64_t n = elements / row.count;
    if (ranks != 0 && n != ranks) return 0;
    ranks = n;
  }
  return ranks;
}

// Where busbw / algbw lies: what rounding leaves of it over all rows.
struct BusFactor {
  double low = 0, high = 1e9;
  bool known() const { return high < 1e9 && low <= high; }
  bool holds(double value) const { return !known() || (value >= low && value <= high); }
  double middle() const { return 0.5 * (low + high); }
};
BusFactor measured_factor(const NcclTest& test) {
  // Two decimals below a thousand, one above.
  const auto rounding = [](double printed) { return printed < 1000 ? 0.00501 : 0.0501; };
  BusFactor factor;
  for (const NcclTestsRow& row : test.rows) {
    for (const auto& half : {row.out_of_place, row.in_place}) {
      if (!half || half->algorithm_bandwidth < 1 || half->bus_bandwidth <= 0) continue;
      const double bus = half->bus_bandwidth, algorithm = half->algorithm_bandwidth;
      const BusFactor both{
          std::max(factor.low, (bus - rounding(bus)) / (algorithm + rounding(algorithm))),
          std::min(factor.high, (bus + rounding(bus)) / (algorithm - rounding(algorithm)))};
      // A row that was changed by hand does not spoil the others.
      if (both.low <= both.high) factor = both;
    }
  }
  return factor;
}

bool fits(const BusFactor& factor, std::string_view collective, int64_t ranks) {
  const double value = nccl_tests_bus_factor(collective, ranks);
  return factor.holds(value) || std::abs(value - factor.middle()) < 1e-3;
}

// The numbers of ranks whose factor may be the measured one: if they are many, the only multiple of
// eight among them. 0 where that is none or not one.
int64_t ranks_by_factor(const NcclTest& test, const BusFactor& factor) {
  if (!factor.known() ||
      nccl_tests_bus_factor(test.collective, 2) == nccl_tests_bus_factor(test.collective, 4)) {
    return 0;
  }
  int64_t any = 0, multiple = 0, number = 0, multiples = 0;
  for (int64_t n = 2; n <= 65536; ++n) {
    if (!factor.holds(nccl_tests_bus_factor(test.collective, n))) continue;
    any = n;
    ++number;
    if (n % 8 != 0) continue;
    multiple = n;
    ++multiples;
  }
  return number == 1 ? any : multiples == 1 ? multiple : 0;
}

bool in_place_is_checked(const NcclTest& test) {
  return std::any_of(test.rows.begin(), test.rows.end(),
                     [](const NcclTestsRow& r) { return r.in_place && r.in_place->wrong; });
}

// Where neither the log nor its file says what ran.
std::string collective_of_columns(const NcclTest& test, const BusFactor& factor) {
  const std::string& reduction = test.rows.front().reduction;
  if (ranks_by_count(test) > 1) {
    // Old builds leave an all-to-all's reduction empty and give an all-gather no such column.
    if (reduction.empty() && test.had_header) return "all_to_all";
    return reduction.empty() || reduction == "none" ? "" : "reduce_scatter";
  }
  if (factor.known() && factor.low > 1) return "all_reduce";
  // Two ranks: all-reduces, and also send/recv, whose in-place half is never checked.
  if (factor.known() && factor.holds(1) && !reduction.empty() && reduction != "none" &&
      in_place_is_checked(test)) {
    return "all_reduce";
  }
  return "";
}

void identify_ranks(const ListedDevices& devices, const BusFactor& factor, NcclTest& test) {
  const int64_t counted = ranks_by_count(test);
  const int64_t by_factor = ranks_by_factor(test, factor);
  if (devices.ranks > 0 && !devices.cut && fits(factor, test.collective, devices.ranks)) {
    test.ranks = devices.ranks;
    test.ranks_from = "the device list";
  } else if (counted > 1 && fits(factor, test.collective, counted)) {
    test.ranks = counted;
    test.ranks_from = "size over count";
  } else if (by_factor > 0) {
    test.ranks = by_factor;
    test.ranks_from = "busbw over algbw";
  } else if (devices.threads_times_gpus > 1 &&
             fits(factor, test.collective, devices.threads_times_gpus)) {
    test.ranks = devices.threads_times_gpus;
    test.ranks_from = "threads and GPUs of the process";
  } else if (devices.ranks > 1) {
    test.ranks = devices.ranks;
    test.ranks_from = "the device list";
  }
  if (devices.ranks > 0 && test.ranks != devices.ranks) {
    test.notes.push_back(
        fmt::format("the device list has {} ranks, the columns say {}: the list was "
                    "cut or belongs to another run",
                    devices.ranks, test.ranks));
  }
}

}  // namespace

std::string nccl_tests_collective(std::string_view program) {
  const std::string name = lower_case(program.substr(program.find_last_of("/\\") + 1));
  for (const Kind& kind : kKinds) {
    for (const std::string_view spelling : kind.spellings) {
      if (name.find(spelling) != std::string::npos) return std::string(kind.name);
    }
  }
  return "";
}

double nccl_tests_bus_factor(std::string_view collective, int64_t ranks) {
  const double share =
      static_cast<double>(ranks - 1) / static_cast<double>(std::max<int64_t>(ranks, 1));
  for (const Kind& kind : kKinds) {
    if (kind.name != collective) continue;
    return kind.factor == Factor::kOne ? 1.0 : kind.factor == Factor::kShare ? share : 2 * share;
  }
  return 0;
}

void identify_nccl_test(const std::string& file, const ListedDevices& devices,
                        const NcclTestsHints& hints, NcclTest& test) {
  const BusFactor factor = measured_factor(test);
  if (!hints.collective.empty()) {
    test.collective = hints.collective;
    test.named_by = "the user";
  } else if (!test.collective.empty()) {
    test.named_by = "the log";
  } else if (test.collective = nccl_tests_collective(file); !test.collective.empty()) {
    test.named_by = "the file name";
  } else if (test.collective = collective_of_columns(test, factor); !test.collective.empty()) {
    test.named_by = "its columns";
  }
  if (!test.collective.empty()) identify_ranks(devices, factor, test);
  if (hints.ranks > 0) {
    test.ranks = hints.ranks;
    test.ranks_from = "the user";
  }
  if (test.ranks > 0 && !test.collective.empty() && !fits(factor, test.collective, test.ranks)) {
    test.notes.push_back(fmt::format("busbw is {:.4f} x algbw, but {} of {} ranks has {:.4f}",
                                     factor.middle(), test.collective, test.ranks,
                                     nccl_tests_bus_factor(test.collective, test.ranks)));
  }
  if (devices.hosts > 0 && test.ranks > 0) {
    const int64_t a_host = std::max<int64_t>(devices.most_on_a_host, 1);
    test.nodes = test.ranks > devices.ranks ? (test.ranks + a_host - 1) / a_host : devices.hosts;
  }
  if (hints.nodes > 0) test.nodes = hints.nodes;
  if (!hints.gpu.empty()) test.gpu = hints.gpu;
}

}  // namespace herdsim
