// Logs of nccl-tests: the text of every generation since 2017 and the JSON of -J.
//
// The text is made for people and changed often. What is relied on: a row is two whole numbers, a
// data type and columns that the header above names; and algbw = size / time, which every row has
// to obey. So launcher prefixes, INFO lines in between, new columns and columns that some
// collectives leave empty need no case of their own; a row that was misread does not obey and is
// skipped with a reason.
//
//   const NcclTestsLog log = read_nccl_tests("all_reduce.log", text);
//   log.tests[0].collective;                     // "all_reduce"
//   log.tests[0].rows.back().out_of_place->bus_bandwidth;   // GB/s
//
// Traps that are handled: times in milliseconds (2017); `error` a magnitude (to 2.12) or `#wrong` a
// count (from 2.13); N/A where nothing was checked; numbers in exponent form, which are less
// precise than the bandwidth beside them; several tests in one file; a file that ends early; a
// device list that was cut. The footer's average over all sizes and both columns is no bandwidth
// and never read.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/units.h"

namespace herdsim {

// Out of place or in place.
struct NcclTestsHalf {
  double microseconds = 0;
  double algorithm_bandwidth = 0, bus_bandwidth = 0;  // GB/s, as printed
  std::optional<double> wrong;                        // nullopt: not checked
};

struct NcclTestsRow {
  int line = 0;  // 0 in JSON
  Bytes size;    // zero for a row that only launches
  int64_t count = 0;
  std::string type;       // "float"
  std::string reduction;  // "sum", "none"; empty where the log leaves it empty
  std::optional<NcclTestsHalf> out_of_place, in_place;

  // Seconds of the operation: the mean of both halves, or the lesser where they differ by more than
  // a fifth, since then one was disturbed. 0 without a half.
  double seconds() const;
  double best_bus_bandwidth() const;  // of both halves, GB/s
};

// One table of a log.
struct NcclTest {
  std::string collective;   // "all_reduce", "all_gather", "broadcast", ...; empty where unknown
  std::string named_by;     // how that is known: "the log", "the file name", "its columns"
  int64_t ranks = 0;        // 0 where unknown
  int64_t nodes = 0;        // 0 where unknown
  std::string ranks_from;   // how the ranks are known
  std::string gpu;          // as the driver prints it; empty where the log has no device list
  std::string nccl;         // "2.29.2"; empty where unknown
  std::string algorithm;    // forced or printed: "Ring", "Tree", "NVLS"; empty where unknown
  bool had_header = false;  // columns were named, not assumed
  bool milliseconds = false;
  bool finished = false;       // has its footer
  bool out_of_bounds = false;  // the footer says FAILED
  std::vector<NcclTestsRow> rows;
  std::vector<std::string> notes;  // of what did not fit together
};

struct SkippedRow {
  int line = 0;
  std::string reason;
};

struct NcclTestsLog {
  std::string file;
  std::vector<NcclTest> tests;  // those with rows
  std::vector<SkippedRow> skipped;
  size_t rows() const;
};

// What a user knows beside the log; it wins over the log.
struct NcclTestsHints {
  std::string collective;
  int64_t ranks = 0, nodes = 0;
  std::string gpu;
};

// Never throws: a text of something else gives a log without tests. `file` is only named; its base
// name may tell the collective.
NcclTestsLog read_nccl_tests(const std::string& file, std::string_view text,
                             const NcclTestsHints& hints = {});

// "all_reduce" of "all_reduce_perf", "/x/build/all_reduce_perf_mpi" or "allreduce"; empty for none.
std::string nccl_tests_collective(std::string_view program);

// Bytes that pass a rank's port for each byte of `size`, over all kinds that nccl-tests has; 0 for
// an unknown one.
double nccl_tests_bus_factor(std::string_view collective, int64_t ranks);

}  // namespace herdsim
