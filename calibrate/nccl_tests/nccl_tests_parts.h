// What the readers of the two formats share: a row from its cells, and what a test's columns tell
// of it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "calibrate/nccl_tests/nccl_tests_log.h"

namespace herdsim {

// The columns of a table: what stands between the type and the first time, one half, and what
// follows both.
struct NcclTestsColumns {
  std::vector<std::string> lead = {"redop", "root"};
  std::vector<std::string> half = {"time", "algbw", "busbw", "#wrong"};
  size_t halves = 2;
  size_t tail_cells = 0;
  double time_scale = 1;  // to microseconds
};

// Of a line with the words "size" or "bytes", "time" or "cputime", "algbw" and "busbw".
std::optional<NcclTestsColumns> nccl_tests_columns(const std::vector<std::string_view>& words);

// A row of `cells` from the size on. Where the cells are fewer than the columns, a lead column is
// empty; where they are more, the last ones have no name. The reading whose times and bandwidths
// agree is taken; the reason where none does.
struct RowReading {
  std::optional<NcclTestsRow> row;
  std::string problem;
};
RowReading read_nccl_tests_row(const std::vector<std::string_view>& cells,
                               const NcclTestsColumns& columns);

// Fills collective, ranks and nodes from hints, the file's name and the columns' own arithmetic:
// all-gathers count elements a rank, and busbw / algbw is a function of the ranks.
struct ListedDevices {
  int64_t ranks = 0, hosts = 0, most_on_a_host = 0;
  bool cut = false;
  int64_t threads_times_gpus = 0;  // of one process
};
void identify_nccl_test(const std::string& file, const ListedDevices& devices,
                        const NcclTestsHints& hints, NcclTest& test);

// The JSON of -J, also where it ends early.
NcclTestsLog read_nccl_tests_json(const std::string& file, std::string_view text,
                                  const NcclTestsHints& hints);

// "2.29.2" of 22902, "2.4.8" of 2408.
std::string nccl_version_text(int64_t code);

std::optional<double> plain_number(std::string_view text);
std::optional<int64_t> whole_number(std::string_view text);

}  // namespace herdsim
