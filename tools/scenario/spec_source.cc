#include "tools/scenario/spec_source.h"

#include <filesystem>
#include <fstream>

#include "sim/base/error.h"
#include "sim/base/read_file.h"

namespace herdsim {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMaxBytes = size_t{1} << 20;
constexpr int kMaxNesting = 32;

[[noreturn]] void fail(Fault fault) { throw SpecError({std::move(fault)}); }

std::string joined(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ", ") + name;
  return all;
}

// The nearest name, or the first that begins as it does.
std::string nearest_entry(const std::string& name, const std::vector<std::string>& names) {
  std::string nearest = nearest_name(name, names);
  for (const std::string& candidate : names) {
    if (nearest.empty() && !name.empty() && candidate.starts_with(name)) nearest = candidate;
  }
  return nearest;
}

// Bytes of the UTF-8 sequence at `i`, 0 if there is none.
size_t utf8_length(std::string_view text, size_t i) {
  const auto byte = [&](size_t k) {
    return k < text.size() ? static_cast<unsigned char>(text[k]) : 0U;
  };
  const unsigned lead = byte(i);
  const size_t length = lead < 0x80                   ? 1
                        : lead >= 0xC2 && lead < 0xE0 ? 2
                        : (lead & 0xF0) == 0xE0       ? 3
                        : lead >= 0xF0 && lead < 0xF5 ? 4
                                                      : 0;
  for (size_t k = 1; k < length; ++k) {
    if ((byte(i + k) & 0xC0) != 0x80) return 0;
  }
  return length;
}

// Follows strings, comments (text format: '#') and brackets over text that the parsers have not
// judged yet.
class NestingScan {
 public:
  int depth() const { return depth_; }
  void step(char c) {
    if (in_comment_) {
      in_comment_ = c != '\n';
    } else if (quote_ != 0) {
      // Both formats end a string at the end of its line at the latest.
      if (escaped_) {
        escaped_ = false;
      } else if (c == '\\') {
        escaped_ = true;
      } else if (c == quote_ || c == '\n') {
        quote_ = 0;
      }
    } else if (c == '#') {
      in_comment_ = true;
    } else if (c == '"' || c == '\'') {
      quote_ = c;
    } else if (c == '{' || c == '[' || c == '<') {
      ++depth_;
    } else if (c == '}' || c == ']' || c == '>') {
      --depth_;
    }
  }

 private:
  int depth_ = 0;
  char quote_ = 0;
  bool escaped_ = false, in_comment_ = false;
};

}  // namespace

std::string text_of_file(const std::string& path) {
  std::error_code error;
  if (fs::is_directory(path, error)) {
    fail({.file = path, .problem = "is a directory", .allowed = "a .textproto or .json file"});
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) fail({.file = path, .problem = "cannot be opened for reading"});
  // One byte more than is allowed shows that it is too long, even where the size is unknown (a
  // pipe, a device).
  std::string text(kMaxBytes + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad()) fail({.file = path, .problem = "cannot be read"});
  text.resize(static_cast<size_t>(in.gcount()));
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  return text;
}

bool is_spec_file(std::string_view name) {
  return name.find('/') != std::string_view::npos || name.ends_with(".textproto") ||
         name.ends_with(".json");
}

SpecSource find_spec(CatalogKind kind, const std::string& name) {
  if (const auto entry = catalog_find(kind, name)) {
    return {.name = std::string(entry->name),
            .file = std::string(entry->file),
            .text = std::string(entry->text),
            .from_catalog = true};
  }
  std::error_code error;
  if (!is_spec_file(name) && (name.empty() || !fs::exists(name, error))) {
    const std::vector<std::string> names = catalog_names(kind);
    fail({.problem = "there is no " + std::string(catalog_kind(kind).singular) + " \"" +
                     name.substr(0, 200) + "\" in the catalogue, nor a file of that name",
          .allowed = joined(names) + ", or a .textproto or .json file",
          .nearest = nearest_entry(name, names)});
  }
  return read_spec_file(name);
}

SpecSource read_spec_file(const std::string& path) {
  std::string text = text_of_file(path);
  check_is_text(text, path);
  return {.name = fs::path(path).stem().string(), .file = path, .text = std::move(text)};
}

void check_is_text(std::string_view text, const std::string& file) {
  if (text.size() > kMaxBytes)
    fail({.file = file, .problem = "is longer than 1 MiB", .allowed = "a spec of some kilobytes"});
  if (text.find_first_not_of(" \t\r\n") == std::string_view::npos)
    fail({.file = file, .problem = "is empty"});
  int line = 1;
  size_t line_start = 0;
  NestingScan nesting;
  for (size_t i = 0; i < text.size();) {
    const char c = text[i];
    const size_t length = utf8_length(text, i);
    const bool control =
        static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\t' && c != '\r';
    const int column = static_cast<int>(i - line_start) + 1;
    if (length == 0 || control || c == 0x7F) {
      fail({.file = file,
            .line = line,
            .column = column,
            .problem = "is not text",
            .allowed = "UTF-8 text"});
    }
    nesting.step(c);
    if (nesting.depth() > kMaxNesting) {
      fail({.file = file,
            .line = line,
            .column = column,
            .problem = "is nested too deeply",
            .allowed = std::to_string(kMaxNesting) + " levels"});
    }
    i += length;
    if (c == '\n') {
      ++line;
      line_start = i;
    }
  }
}

bool looks_like_json(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && (text[first] == '{' || text[first] == '[');
}

}  // namespace herdsim
