#include "sim/base/table.h"

#include <algorithm>

#include "sim/base/check.h"

namespace herdsim {
namespace {

constexpr size_t kGap = 2;
constexpr size_t kLeastWrap = 16;

// Columns a text takes on a terminal: UTF-8 continuation bytes take none.
size_t width_of(std::string_view text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

// Breaks at spaces; a longer word stands alone and sticks out.
std::vector<std::string> wrapped(std::string_view text, size_t width) {
  std::vector<std::string> lines(1);
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size());
    const std::string_view word = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (word.empty()) continue;
    std::string& line = lines.back();
    if (line.empty()) {
      line = word;
    } else if (width_of(line) + 1 + width_of(word) <= width) {
      line.append(" ").append(word);
    } else {
      lines.emplace_back(word);
    }
  }
  return lines;
}

}  // namespace

TextTable::TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {
  HERDSIM_CHECK(std::count_if(columns_.begin(), columns_.end(),
                              [](const Column& c) { return c.align == Align::kWrap; }) <= 1);
}

void TextTable::add_row(std::vector<std::string> cells) {
  HERDSIM_CHECK(cells.size() == columns_.size())
      << cells.size() << " cells for " << columns_.size() << " columns";
  rows_.push_back(std::move(cells));
}

std::vector<size_t> TextTable::widths() const {
  std::vector<size_t> result;
  size_t total = 0;
  for (size_t c = 0; c < columns_.size(); ++c) {
    size_t width = width_of(columns_[c].header);
    for (const std::vector<std::string>& row : rows_) width = std::max(width, width_of(row[c]));
    result.push_back(width);
    total += width + (c > 0 ? kGap : 0);
  }
  for (size_t c = 0; c < columns_.size() && total > kWidth; ++c) {
    if (columns_[c].align != Align::kWrap) continue;
    const size_t others = total - result[c];
    result[c] = std::max(kLeastWrap, others < kWidth ? kWidth - others : 0);
    break;
  }
  return result;
}

void TextTable::append_row(const std::vector<std::string>& cells, const std::vector<size_t>& widths,
                           std::string& out) const {
  std::vector<std::vector<std::string>> lines;
  size_t height = 1;
  for (size_t c = 0; c < cells.size(); ++c) {
    lines.push_back(columns_[c].align == Align::kWrap ? wrapped(cells[c], widths[c])
                                                      : std::vector{cells[c]});
    height = std::max(height, lines.back().size());
  }
  for (size_t i = 0; i < height; ++i) {
    std::string line;
    size_t column = 0;  // where the next cell starts
    size_t at = 0;      // where the line ends
    for (size_t c = 0; c < cells.size(); ++c) {
      const std::string cell = i < lines[c].size() ? lines[c][i] : "";
      const size_t width = width_of(cell);
      const size_t indent =
          columns_[c].align == Align::kRight && width < widths[c] ? widths[c] - width : 0;
      if (width > 0) {
        // A word that sticks out of its column pushes the rest of its line along.
        const size_t start = std::max(column + indent, at == 0 ? 0 : at + 1);
        line.append(start - at, ' ').append(cell);
        at = start + width;
      }
      column += widths[c] + kGap;
    }
    out += line;
    out += '\n';
  }
}

std::string TextTable::text() const {
  const std::vector<size_t> columns = widths();
  std::vector<std::string> headers;
  for (const Column& c : columns_) headers.push_back(c.header);
  std::string out;
  const bool has_header = std::any_of(headers.begin(), headers.end(),
                                      [](const std::string& header) { return !header.empty(); });
  if (has_header) append_row(headers, columns, out);
  for (const std::vector<std::string>& row : rows_) append_row(row, columns, out);
  return out;
}

}  // namespace herdsim
