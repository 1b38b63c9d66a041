// Which schedule the run of a row had, in how many chunks a stage and with how many layers each.
#pragma once

#include <string>
#include <vector>

#include "tools/scenario/scenario.h"
#include "tools/validation/run_table.h"
#include "tools/validation/row_words.h"

namespace herdsim {

// Sets the schedule, virtual_stages and layers_per_chunk of a scenario whose model and plan are known. What the row
// leaves open is named in `assumed`: a schedule that cannot run this plan becomes 1F1B; the defaults are those of
// row_scenario.h.
void choose_schedule(const RunRow& row, const RowWords& words, Scenario& scenario, std::vector<std::string>& assumed);

}  // namespace herdsim
