// A table of plans over a model so small that its FLOPs and bytes are whole numbers a double holds.
#pragma once

#include <string>
#include <vector>

#include "workloads/lowering.h"

namespace herdsim {

struct PlanCase {
  std::string name;
  ModelArchitecture model;
  ParallelPlan plan;
  Training training;
  SoftwareStack software;

  WorkloadSpec spec() const { return {model, plan, training, software}; }
  const ScheduleRow& row() const { return *find_schedule(training.schedule); }
  ScheduleShape shape() const { return schedule_shape(plan, training); }
  OpGraph lower() const { return lower_step(spec(), row(), layout_stages(model, plan, row())); }
};

// Every schedule row with every sharding, recomputation and way of splitting tensors, on several
// grids; only what validation accepts. Some hundred cases.
const std::vector<PlanCase>& plan_cases();

template <class Body>
void for_each_op(const OpGraph& graph, Body&& body) {
  for (size_t p = 0; p < graph.programs.size(); ++p) {
    const Program& program = graph.programs[ProgramId(p)];
    for (size_t o = 0; o < program.ops.size(); ++o) {
      const Op& op = program.ops[o];
      body(ProgramId(p), OpId(o), op, graph.works[op.work]);
    }
  }
}

}  // namespace herdsim
