// The text of a spec: read from the catalogue or a file, and shown to be text before any parser
// sees it.
#pragma once

#include <string>
#include <string_view>

#include "tools/scenario/catalog.h"

namespace herdsim {

struct SpecSource {
  std::string name;  // "llama3-405b", or the file's name without suffix
  std::string file;  // as messages show it
  std::string text;
  bool from_catalog = false;
};

// A name that is a file rather than a catalogue name: it holds '/' or ends in .textproto or .json.
bool is_spec_file(std::string_view name);

// Finds `name` in the catalogue, or reads the file of that path.
// Throws: SpecError if there is neither, if it cannot be read, is a directory, or no text.
SpecSource find_spec(CatalogKind kind, const std::string& name);

// The file of that path. Throws: SpecError as find_spec().
SpecSource read_spec_file(const std::string& path);

// The bytes of any file that a scenario names, up to 1 MiB and one byte, without a mark of UTF-8 at the begin.
// Throws: SpecError where it is a directory or cannot be read.
std::string text_of_file(const std::string& path);

// Throws: SpecError unless it is UTF-8 text without control characters, not empty, not longer than
// 1 MiB, and not nested deeper than 32: parsers recurse, and a stack is finite.
void check_is_text(std::string_view text, const std::string& file);

// JSON by content, whatever the file is called: text format never begins with a brace.
bool looks_like_json(std::string_view text);

}  // namespace herdsim
