#include "tools/report/text_layout.h"

#include <gtest/gtest.h>

#include <sstream>

namespace herdsim {
namespace {

TEST(TextLayout, a_paragraph_stays_within_the_terminal_and_loses_no_word) {
  std::string text;
  for (int i = 1; i < 60; ++i) text += std::string(static_cast<size_t>(i % 13 + 1), 'w') + " ";
  std::istringstream lines(paragraph("warning", text));
  std::string line, words;
  for (int n = 0; std::getline(lines, line); ++n) {
    EXPECT_LE(line.size(), 80u);
    EXPECT_EQ(line.substr(0, 9), n == 0 ? "warning  " : std::string(9, ' '));
    words += line.substr(9) + " ";
  }
  EXPECT_EQ(words, text);
}

TEST(TextLayout, a_bar_has_its_share_of_columns) {
  EXPECT_EQ(bar(0, 30), "");
  EXPECT_EQ(bar(-1, 30), "");
  EXPECT_EQ(bar(1e-9, 30), "#");
  EXPECT_EQ(bar(0.5, 30).size(), 15u);
  EXPECT_EQ(bar(1, 30).size(), 30u);
  EXPECT_EQ(bar(7, 30).size(), 30u);
}

}  // namespace
}  // namespace herdsim
