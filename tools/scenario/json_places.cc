#include "tools/scenario/json_places.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

namespace herdsim {
namespace {

std::string snake_case(std::string_view key) {
  std::string out;
  for (char c : key) {
    const auto u = static_cast<unsigned char>(c);
    if (std::isupper(u) != 0) {
      out += '_';
      out += static_cast<char>(std::tolower(u));
    } else {
      out += c;
    }
  }
  return out;
}

// One open bracket: an object, whose keys extend the path, or a list, whose indices do.
struct Level {
  std::string path;
  bool is_list = false;
  bool expects_key = false;
  size_t index = 0;
};

class Scanner {
 public:
  explicit Scanner(std::string_view text) : text_(text) {}

  std::vector<JsonPlace> run() {
    while (at_ < text_.size() && step()) {
    }
    return std::move(places_);
  }

 private:
  // One token; false at what cannot be JSON.
  bool step() {
    const char c = text_[at_];
    switch (c) {
      case '\n':
        ++line_;
        line_start_ = at_ + 1;
        [[fallthrough]];
      case ' ':
      case '\t':
      case '\r':
      case ':':
        ++at_;
        return true;
      case '{':
      case '[':
        note_element();
        levels_.push_back({.path = value_path(), .is_list = c == '[', .expects_key = c == '{'});
        ++at_;
        return true;
      case '}':
      case ']':
        if (levels_.empty()) return false;
        levels_.pop_back();
        ++at_;
        return true;
      case ',':
        if (levels_.empty()) return false;
        ++levels_.back().index;
        levels_.back().expects_key = !levels_.back().is_list;
        ++at_;
        return true;
      default:
        return word();
    }
  }

  // A key or a value, quoted or bare.
  bool word() {
    const size_t start = at_;
    const char quote = text_[at_];
    std::string_view content;
    if (quote == '"' || quote == '\'') {
      for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_) {
        if (text_[at_] == '\n') return false;
        if (text_[at_] == '\\') ++at_;
      }
      if (at_ >= text_.size()) return false;
      content = text_.substr(start + 1, at_ - start - 1);
      ++at_;
    } else {
      at_ = std::min(text_.find_first_of(" \t\r\n:,{}[]", at_), text_.size());
      content = text_.substr(start, at_ - start);
    }
    if (levels_.empty()) return false;
    Level& level = levels_.back();
    if (level.expects_key) {
      level.expects_key = false;
      key_ = (level.path.empty() ? "" : level.path + ".") + snake_case(content);
      add(key_, start);
    } else {
      note_element(start);
      if (quote != '"' && quote != '\'' && !places_.empty()) places_.back().number = number(content);
    }
    return true;
  }

  // What a bare word is as a number, infinite beyond a double; empty for other words.
  static std::optional<double> number(std::string_view word) {
    double value = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (end != word.data() + word.size()) return std::nullopt;
    if (error == std::errc::result_out_of_range) return std::numeric_limits<double>::infinity();
    return error == std::errc() ? std::optional(value) : std::nullopt;
  }

  std::string value_path() const {
    if (levels_.empty()) return "";
    const Level& level = levels_.back();
    return level.is_list ? level.path + "." + std::to_string(level.index) : key_;
  }
  void note_element() { note_element(at_); }
  void note_element(size_t at) {
    if (!levels_.empty() && levels_.back().is_list) add(value_path(), at);
  }
  void add(std::string path, size_t at) {
    places_.push_back(
        {.path = std::move(path), .line = line_, .column = static_cast<int>(at - line_start_) + 1});
  }

  std::string_view text_;
  size_t at_ = 0, line_start_ = 0;
  int line_ = 1;
  std::string key_;
  std::vector<Level> levels_;
  std::vector<JsonPlace> places_;
};

}  // namespace

std::vector<JsonPlace> json_places(std::string_view text) { return Scanner(text).run(); }

std::optional<JsonPlace> json_syntax_error(std::string_view text) {
  try {
    // Nothing is kept: only the place of an exception is of interest.
    const auto keep_nothing = [](int, nlohmann::json::parse_event_t, nlohmann::json&) {
      return false;
    };
    const nlohmann::json nothing = nlohmann::json::parse(text, keep_nothing);
  } catch (const nlohmann::json::parse_error& error) {
    const size_t at = std::min(error.byte > 0 ? error.byte - 1 : 0, text.size());
    const std::string_view before = text.substr(0, at);
    const size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
    return JsonPlace{.path = "",
                     .line = static_cast<int>(std::count(before.begin(), before.end(), '\n')) + 1,
                     .column = static_cast<int>(at - line_start) + 1};
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;  // JSON, with a number beyond a double
  }
  return std::nullopt;
}

std::optional<JsonPlace> json_number_too_large(std::string_view text) {
  for (const JsonPlace& place : json_places(text)) {
    if (place.number && !std::isfinite(*place.number)) return place;
  }
  return std::nullopt;
}

}  // namespace herdsim
