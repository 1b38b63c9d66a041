// What `herdsim profile import nccl-tests` prints.
#pragma once

#include <string>
#include <vector>

#include "calibrate/nccl_tests/link_verdict.h"
#include "calibrate/nccl_tests/nccl_tests_log.h"

namespace herdsim {

// One block a test: what it is, its bandwidth over the bound, what is unusual; then how many rows
// were read and skipped, and why.
std::string nccl_tests_text(const std::vector<NcclTestsLog>& logs, const VerdictOptions& options);

// {"rows_read", "rows_skipped", "logs": [{"file", "skipped": [...], "tests": [{..., "verdict":
// {...}, "rows": [...]}]}]}: every row with both its halves; what was not checked is null.
std::string nccl_tests_json(const std::vector<NcclTestsLog>& logs, const VerdictOptions& options);

// op,gpus,nodes,bytes,time_us,dtype: what `profile check` reads. Tests whose kind or group is not
// known are left out.
std::string nccl_tests_csv(const std::vector<NcclTestsLog>& logs);

}  // namespace herdsim
