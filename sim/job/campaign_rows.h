// From what a user asked for to the rows of a campaign: failure classes, slow parts and detectors
// of the base, with the changes of the request applied.
#pragma once

#include <vector>

#include "sim/base/error.h"
#include "sim/job/campaign_request.h"
#include "sim/reliability/corruption_detector.h"
#include "sim/reliability/failure_class.h"
#include "sim/reliability/slow_component.h"

namespace herdsim {

// `scale` thins or multiplies the row's rate; halving a class keeps every second of its events, the
// same ones each time.
struct CampaignClass {
  FailureClass row;
  double scale = 1;
};
struct CampaignSlow {
  SlowComponent row;
  double scale = 1;
};

// Whether the job goes on, slower, while what failed is mended: its traffic takes the other ports
// of a NIC, or with `rail_failover` the other rails of the host. `takes_tor`: a whole ToR failed.
bool traffic_moves(const FailureClass& row, bool takes_tor, const FailureDomains& machine,
                   bool rail_failover);

// Of a class's events, the share that stops the job.
double stopping_share(const FailureClass& row, const FailureDomains& machine, bool rail_failover);

// Of everything that stops the job unplanned, an hour.
double unplanned_rate_per_hour(const std::vector<CampaignClass>& classes,
                               const FailureDomains& machine, bool rail_failover);

// Each adds what is wrong to `faults`, under the scenario's field names, and leaves that row out.
// In this order: base, laws of all classes, log, classes, total rate, rate_scale.
std::vector<CampaignClass> campaign_classes(const ReliabilityRequest& request,
                                            const FailureDomains& machine, Faults& faults);
std::vector<CampaignSlow> campaign_slow_parts(const ReliabilityRequest& request, Faults& faults);
std::vector<CorruptionDetector> campaign_detectors(const ReliabilityRequest& request,
                                                   Faults& faults);

// The row of a table by name; a fault with the nearest name where there is none.
template <class Row>
const Row* find_row(const std::vector<Row>& rows, const std::string& name, std::string field,
                    Faults& faults) {
  std::vector<std::string> names;
  for (const Row& row : rows) {
    if (row.name == name) return &row;
    names.emplace_back(row.name);
  }
  Fault fault{.field = std::move(field), .problem = "there is no \"" + name + "\""};
  for (const std::string& known : names)
    fault.allowed += (fault.allowed.empty() ? "" : ", ") + known;
  fault.nearest = nearest_name(name, names);
  faults.add(std::move(fault));
  return nullptr;
}

}  // namespace herdsim
