// What fits at the end of an unfinished command line, from the tables that `--help` and `herdsim
// catalog` print: commands, options, catalogue names, field paths of --set and --axis and their
// values. The shells' scripts (completions/) ask for it and know nothing themselves.
//
//   completions({"step", "llama3-405b-16384", "--set", "parallel.sh"})  ->  {{"parallel.shard=",
//   "..."}}
#pragma once

#include <string>
#include <vector>

#include "tools/herdsim/catalog_commands.h"

namespace herdsim {

// `words` follow the program's name; the last is being typed and may be empty. Each answer replaces
// the last word; one that ends in '.' or '=' goes on. Empty where nothing is known, such as a
// number or the name of a file.
std::vector<CatalogLine> completions(const std::vector<std::string>& words);

// `completion bash|zsh|fish` prints a script, `completion words -- WORD...` what fits, one a line
// with its help behind a tab.
int run_completion_command(const Options& options, Streams streams);

}  // namespace herdsim
