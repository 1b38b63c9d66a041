#include "sim/reliability/rate_range.h"

namespace herdsim {

const std::vector<RateRange>& assumed_rate_ranges() {
  static const std::vector<RateRange> rows = {
      {.failure_class = "link_flap",
       .low = 0.1,
       .high = 10,
       .source =
           "HPN, SIGCOMM'24 counts 5,000 to 60,000 a day in a fleet whose size it does not say"},
      {.failure_class = "power_domain",
       .low = 0.2,
       .high = 5,
       .source = "once in 1 to 30 years a domain; no publication counts them"},
      {.failure_class = "pod_switch",
       .low = 0.07,
       .high = 5,
       .source = "from one ToR's published rate (HPN, SIGCOMM'24) to once in 2 years a pod"},
      {.failure_class = "storage_outage",
       .low = 0.25,
       .high = 4,
       .source = "once a week to once in 4 months; no publication counts them"},
      {.failure_class = "code_push",
       .low = 0,
       .high = 3,
       .source = "none to 3 a day; ByteRobust (SOSP'25) shows 28 runs in 10 days"},
  };
  return rows;
}

}  // namespace herdsim
