// The fields of the scenario language one level at a time, from its own definition: what a shell
// offers behind --set.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace herdsim {

struct SpecField {
  std::string name;         // "tp"
  std::string help;         // the first sentence of its comment
  bool has_fields = false;  // a message: more follows a dot
  std::vector<std::string>
      values;  // of enums and switches; empty where a number or a text is expected
};

// Of the message at `path`: "" is the scenario, "parallel" its plan. Empty where there is none:
// unknown paths, numbers, elements of lists.
std::vector<SpecField> spec_fields(std::string_view path);

}  // namespace herdsim
