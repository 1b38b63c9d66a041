// What may explain the error of a row or of a catalogue scenario: the question that
// tools/study/error_causes.h answers.
//
// Of a row: the stated ranges of its software stack, the efficiency of NICs where the run measured
// no network, and what it leaves blank. A choice of the user (--set) is no uncertainty.
#pragma once

#include <string>
#include <vector>

#include "tools/study/error_causes.h"
#include "tools/validation/published_scenarios.h"
#include "tools/validation/row_scenario.h"
#include "tools/validation/run_table.h"

namespace herdsim {

// `which` is an id or a number from 1, of the ids in order.
// Throws: SpecError with the nearest ids where there is none such.
size_t index_of_row(const std::vector<std::string>& ids, const std::string& which);

// The references must outlive the question.
// Throws: SpecError where the row is not predicted or has no published time.
ErrorQuestion question_of_row(const RunRow& row, const RowParts& parts);

// The published time is the one at which the scenario's MFU would be the published one. `sets` as
// of --set.
ErrorQuestion question_of_published(const PublishedComparison& row,
                                    const std::vector<std::string>& sets);

}  // namespace herdsim
