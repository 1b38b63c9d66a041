#include "sim/base/table.h"

#include <gtest/gtest.h>

#include <sstream>

namespace herdsim {
namespace {

TEST(TextTable, aligns_columns_and_leaves_no_space_at_the_end) {
  TextTable table({{"stage"}, {"time", Align::kRight}, {"what"}});
  table.add_row({"forward", "1.2 ms", "layers"});
  table.add_row({"a", "120 ms", ""});
  EXPECT_EQ(table.text(),
            "stage      time  what\n"
            "forward  1.2 ms  layers\n"
            "a        120 ms\n");
}

TEST(TextTable, wraps_one_column_so_that_no_line_is_wider_than_80) {
  TextTable table({{"name"}, {"what it is", Align::kWrap}, {"n", Align::kRight}});
  std::string words;
  for (int i = 0; i < 60; ++i) words += "word" + std::to_string(i) + ' ';
  table.add_row({"one", words, "1"});
  table.add_row({"two", "short", "22"});
  std::istringstream lines(table.text());
  std::string line, all;
  size_t widest = 0;
  while (std::getline(lines, line)) {
    widest = std::max(widest, line.size());
    all += line + ' ';
  }
  EXPECT_LE(widest, TextTable::kWidth);
  EXPECT_GE(widest, TextTable::kWidth - 8) << "room was left unused";
  for (int i = 0; i < 60; ++i)
    EXPECT_NE(all.find("word" + std::to_string(i) + ' '), std::string::npos);
}

TEST(TextTable, a_word_wider_than_its_column_sticks_out_and_is_not_lost) {
  TextTable table({{"what", Align::kWrap}, {"n", Align::kRight}});
  const std::string word(100, 'x');
  table.add_row({word, "7"});
  EXPECT_NE(table.text().find(word + " 7\n"), std::string::npos);
}

TEST(TextTable, counts_letters_and_not_bytes) {
  TextTable table({{"a"}, {"b"}});
  table.add_row({"\xC2\xB5s", "x"});  // two columns, three bytes
  EXPECT_EQ(table.text(), "a   b\n\xC2\xB5s  x\n");
}

TEST(TextTableDeathTest, a_row_of_the_wrong_length_is_a_program_error) {
  TextTable table({{"a"}, {"b"}});
  EXPECT_DEATH(table.add_row({"only"}), "1 cells for 2 columns");
}

}  // namespace
}  // namespace herdsim
