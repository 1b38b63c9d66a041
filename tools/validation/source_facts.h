// What the sources of published runs say beside the table's columns, or against them: facts of a
// configuration that was read, each with where it stands. Never a measured time, nor anything
// fitted to one.
//
// A fact is the content of columns (run_table.h), so a table of one's own says the same in them. A
// row has the first facts that fit its columns source_where, model, gpu, precision and pp; without
// source_where it has none.
//
// Of a row of "github NVIDIA/dgxc-benchmarking@v25.02 llama3.1/README_405b.md", model
// "Llama3.1-405B": vocab 50257, said in that README.
#pragma once

#include <string_view>
#include <utility>
#include <vector>

namespace herdsim {

struct SourceFact {
  std::string_view where;     // how source_where begins, behind "github "
  std::string_view model;     // how the column model begins
  std::string_view gpu = {};  // and the column gpu; empty: any
  std::string_view precision = {};  // and what the column precision says; empty: anything
  bool pipelined = false;     // only rows whose column pp is above 1
  // Column, and what its cell says.
  std::vector<std::pair<std::string_view, std::string_view>> cells;
  std::string_view stated;  // where it is said, and in which words
};

// The whole table, for tests and help.
const std::vector<SourceFact>& source_facts();

// Null where nothing more is known.
const SourceFact* facts_of_source(std::string_view source_where, std::string_view model,
                                  std::string_view gpu, std::string_view precision,
                                  bool pipelined);

}  // namespace herdsim
