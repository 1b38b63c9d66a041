// `--set FIELD.PATH=VALUE`: one field of a spec, changed by reflection.
//
//   parallel.tp=4                                        a number, a name of an enum, true or
//   false, a string without quotes cluster.degraded={gpu: 3 compute_factor: 0.9}        one more of
//   a list cluster.degraded.0.gpu=3                             within an element that is there
//   parallel.layers_per_chunk=[7, 8, 8, 7]               a whole list
//   reliability.classes.nic.scale=2                      within the element of that name, which is
//                                                        added where there is none
//   parallel.dp=                                         back to what it is when it is left out
#pragma once

#include <string>

#include "tools/scenario/field_origins.h"

namespace google::protobuf {
class Message;
}

namespace herdsim {

// Faults name the option: unknown paths with the nearest name, values of the wrong type with what
// is allowed.
void set_field(const std::string& assignment, google::protobuf::Message* message,
               SpecReport* report);

}  // namespace herdsim
