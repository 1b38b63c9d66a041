#include "traces/printable_text.h"

#include <gtest/gtest.h>

namespace herdsim {
namespace {

TEST(Printable, clean_text_stays_as_it_is) {
  for (const std::string text :
       {"", "all_gather ring", "\\x0a", "größe", "模型", "\xf0\x9f\x90\x91", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_EQ(printable(text), text);
  }
}

TEST(Printable, every_control_character_is_escaped) {
  for (int c = 0; c < 0x80; ++c) {
    const bool is_control = c < 0x20 || c == 0x7f;
    const std::string escaped = printable(std::string(1, static_cast<char>(c)));
    EXPECT_EQ(escaped.size(), is_control ? 4u : 1u) << c;
  }
  EXPECT_EQ(printable(std::string("a\0b\n", 4)), "a\\x00b\\x0a");
}

TEST(Printable, malformed_sequences_are_escaped_byte_by_byte) {
  EXPECT_EQ(printable("\xff"), "\\xff");
  EXPECT_EQ(printable("\xc3"), "\\xc3");                    // cut short
  EXPECT_EQ(printable("\xc0\xaf"), "\\xc0\\xaf");           // overlong
  EXPECT_EQ(printable("\xe0\x80\x80"), "\\xe0\\x80\\x80");  // overlong
  EXPECT_EQ(printable("\xed\xa0\x80"), "\\xed\\xa0\\x80");  // surrogate
  EXPECT_EQ(printable("\xf4\x90\x80\x80"), "\\xf4\\x90\\x80\\x80");
  EXPECT_EQ(printable("\xe6\xa8x"), "\\xe6\\xa8x");
}

}  // namespace
}  // namespace herdsim
