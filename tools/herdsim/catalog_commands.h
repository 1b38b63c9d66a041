// catalog, help: what there is.
#pragma once

#include <string>
#include <vector>

#include "tools/herdsim/command.h"

namespace herdsim {

struct CatalogLine {
  std::string name, help;
};

// "scenarios", "models", ...: the kinds of `herdsim catalog`, in its order.
std::vector<std::string> catalog_kinds();

// What there is of a kind. Throws: SpecError for a kind that is none.
std::vector<CatalogLine> catalog_lines(const std::string& kind);

int run_catalog_command(const Options& options, Streams streams);
int run_help_command(const Options& options, Streams streams);

}  // namespace herdsim
