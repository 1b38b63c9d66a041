// Aligned tables of text, at most 80 columns wide.
//
//   TextTable table({{"stage"}, {"time", Align::kRight}, {"what it is", Align::kWrap}});
//   table.add_row({"forward", "1.2 ms", "one micro-batch through the layers of one stage"});
//   std::cout << table.text();
//
//   stage      time  what it is
//   forward  1.2 ms  one micro-batch through the layers of one stage
//
// Columns are two spaces apart and as wide as their widest cell. Where that exceeds 80 columns the
// kWrap column takes what the others leave (at least 16) and breaks its text at spaces; without
// such a column the table is as wide as it must be.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace herdsim {

enum class Align : uint8_t { kLeft, kRight, kWrap };

class TextTable {
 public:
  static constexpr size_t kWidth = 80;

  struct Column {
    std::string header;
    Align align = Align::kLeft;
  };

  // At most one column wraps.
  explicit TextTable(std::vector<Column> columns);

  // Requires: one cell a column.
  void add_row(std::vector<std::string> cells);
  // Lines end in a newline and have no trailing spaces. Without any header there is no line of them.
  std::string text() const;

 private:
  std::vector<size_t> widths() const;
  void append_row(const std::vector<std::string>& cells, const std::vector<size_t>& widths,
                  std::string& out) const;

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace herdsim
