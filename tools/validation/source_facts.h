// What the sources of published runs say beside the table's columns, or against them: facts of a
// configuration that was read, each with where it stands. Never a measured time, nor anything
// fitted to one.
//
// A row finds its facts by its columns source_where, model and gpu; a table without source_where
// has none.
//
// Of a row of "github NVIDIA/dgxc-benchmarking@v25.02 llama3.1/README_405b.md", model
// "Llama3.1-405B": vocab 50257, said in that README.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tools/validation/run_table.h"

namespace herdsim {

struct SourceFact {
  std::string_view where;                  // how source_where begins, behind "github "
  std::string_view model;                  // how the column model begins
  std::string_view gpu = {};               // and the column gpu; empty: any
  std::optional<int64_t> vocab = {};       // of the tokenizer that really ran, before padding
  std::string_view attention_kernel = {};  // a name of the profile's; empty: as the row says
  std::string_view recompute = {};         // as the column of that name; empty: as the row says
  double expert_capacity = 0;              // of its mean share; 0: no token is dropped
  // Fields of the software's record that its configuration set otherwise: "logit_bytes=52".
  std::vector<std::string> software = {};
  std::string_view stated;  // where it is said, and in which words
};

// The whole table, for tests and help.
const std::vector<SourceFact>& source_facts();

// Null where nothing more is known.
const SourceFact* facts_of_source(const RunRow& row);

}  // namespace herdsim
