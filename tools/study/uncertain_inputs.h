// The inputs of a scenario that nobody measured on its machine, each with the range it may lie in.
//
// The catalogue is the source: the comment behind a number says what it rests on and, where it is
// not certain, from where to where it may be:
//
//   nic_efficiency: 0.97   # assumed, 0.92 to 0.97: NCCL maintainers expect 46 to 48 GB/s
//   tp_overlap: NONE       # assumed, NONE to CHUNKED: ...
//   logit_bytes: 23        # assumed; 8 (fused cross entropy) to 38 (eager)
//
// Where several fields share a line the range is of the first one. Beside the catalogue: the clock of
// a whole step, and failure rates, whose counts have the exact band of a Poisson mean.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace herdsim {

struct UncertainInput {
  std::string path;              // as --set has it
  std::string value, low, high;  // as --set has them
  std::string evidence;          // "assumed", "published", "derived"
  std::string source;
};

// Of one catalogue text, in its order; paths without prefix, values as the text has them.
std::vector<UncertainInput> ranges_in(std::string_view text);

// Of the software stack of that name in the catalogue, paths from "software.", with the clock of a whole step,
// where it has none of its own: what a scenario without effective text has.
std::vector<UncertainInput> uncertain_inputs_of_software(const std::string& name);

// Of a scenario, from its effective text: the ranges of its cluster's and its software's catalogue
// entries, and of its failures. An input that the scenario sets to something outside its range is a
// choice, and left out.
std::vector<UncertainInput> uncertain_inputs(std::string_view effective_text);

// The value of a field in an effective text, without quotes; "" where it is not there.
std::string effective_value(std::string_view effective_text, std::string_view path);

}  // namespace herdsim
