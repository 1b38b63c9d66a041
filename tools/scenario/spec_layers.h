// A spec as layers: defaults below bases below what the file says below what --set says.
#pragma once

#include <string>

#include "tools/scenario/field_origins.h"
#include "tools/scenario/spec_source.h"

namespace google::protobuf {
class Message;
}

namespace herdsim {

// Lays `over` on `under`: fields that are present win, lists replace lists. The result is in
// `over`.
void lay_over(const google::protobuf::Message& under, const FieldOrigins& under_origins,
              google::protobuf::Message* over, FieldOrigins* origins);

// Files that a text names, bases and failure logs, are beside it: makes their paths, in `message`
// and its parts, those from where the program runs. Files that --set names are there already.
void locate_bases(const SpecSource& source, google::protobuf::Message* message);

// Replaces `base: "..."` of a part by the fields of that catalogue entry or file, below those that
// are there, through bases of bases. `prefix` is the path of the part and a dot ("model."), "" for
// a scenario. Leaves `base` empty and `name` set. Faults:
// no such base, a base in a circle, what its text has wrong.
void resolve_base(CatalogKind kind, const std::string& prefix, google::protobuf::Message* part,
                  SpecReport* report);

// Checks every field on its own: numbers within the range that the .proto states, no NaN or
// infinity, strings printable, required fields present. A number that is out of range is moved into
// it after it has been reported, so that later checks can calculate.
void check_fields(const std::string& prefix, google::protobuf::Message* message,
                  SpecReport* report);

// Text format, each field with where it comes from in a comment.
std::string annotated_text(const google::protobuf::Message& message, const FieldOrigins& origins);

}  // namespace herdsim
