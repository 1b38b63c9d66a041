// Line and column of every key of a JSON text, which protobuf's JSON parser does not keep.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace herdsim {

struct JsonPlace {
  std::string path;  // "cluster.degraded.0.gpu"; lowerCamelCase keys in snake_case, as the spec
                     // names its fields
  int line = 0, column = 0;  // of the key, or of an element of a list; 1-based
  std::optional<double> number = std::nullopt;  // its value, where that is a number; infinite beyond a double
};

// In the order of the text. Stops quietly at what is not JSON: another parser says what is wrong
// with it. Complexity: linear, plus the length of the paths.
std::vector<JsonPlace> json_places(std::string_view text);

// The first number that no double holds, such as 1e400.
std::optional<JsonPlace> json_number_too_large(std::string_view text);

// Where a JSON parser stops because the text is not JSON; nullopt if it is.
std::optional<JsonPlace> json_syntax_error(std::string_view text);

}  // namespace herdsim
