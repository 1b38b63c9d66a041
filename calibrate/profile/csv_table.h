// A CSV file with a header line: cells by column name, with the line they stand on. Quoted cells
// may hold commas, doubled quotes and line ends (RFC 4180). Lines that are empty or start with '#'
// are skipped.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/base/error.h"

namespace herdsim {

class CsvTable {
 public:
  // Throws: SpecError for an empty file, a NUL byte, two columns of one name, a row of another length than the
  // header's, an open quote.
  CsvTable(std::string_view text, std::string file);

  size_t rows() const { return rows_.size(); }
  std::optional<size_t> column(std::string_view name) const;
  const std::vector<std::string>& columns() const { return header_; }
  const std::string& cell(size_t row, size_t column) const { return rows_[row].cells[column]; }

  // The number in a cell; a fault and 0 where there is none or it is not positive and finite.
  double positive_number(size_t row, size_t column, Faults& faults) const;
  void fault(size_t row, size_t column, std::string problem, std::string allowed,
             Faults& faults) const;

 private:
  void append_header_faults(int line, Faults& faults) const;

  struct Row {
    int line = 0;
    std::vector<std::string> cells;
  };
  std::string file_;
  std::vector<std::string> header_;
  std::vector<Row> rows_;
};

}  // namespace herdsim
