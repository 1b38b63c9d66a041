// The rows of the table, one family a file; registry.cc lists them. Only registry.cc includes this.
#pragma once

#include "workloads/schedules/schedule.h"

namespace herdsim {

ScheduleRow gpipe_schedule();
ScheduleRow breadth_first_schedule();
ScheduleRow one_f_one_b_schedule();
ScheduleRow interleaved_schedule();
ScheduleRow zb_h1_schedule();
ScheduleRow zb_2p_schedule();
ScheduleRow zb_v_schedule();
ScheduleRow dualpipe_schedule();

}  // namespace herdsim
