// Text of a spec into a protobuf message, by reflection: text format or JSON, told apart by
// content.
//
// Every unknown field is a fault with the nearest name of its message; of other errors the parsers
// report the first, since after it they cannot tell what the text means.
#pragma once

#include <string>
#include <string_view>

#include "tools/scenario/field_origins.h"
#include "tools/scenario/spec_source.h"

namespace google::protobuf {
class Descriptor;
class FieldDescriptor;
class Message;
}  // namespace google::protobuf

namespace herdsim {

// Fills `message` and notes where each field stands, under `prefix` ("model." for a model's file,
// "" for a scenario).
void parse_spec(const SpecSource& source, std::string_view prefix,
                google::protobuf::Message* message, FieldOrigins* origins, SpecReport* report);

// Text format of one value or field that an option gives; faults go to `path`.
bool parse_fragment(const std::string& text, const std::string& path,
                    google::protobuf::Message* message, SpecReport* report);

// What a field takes, in words: "a whole number", "NONE, SELECTIVE or FULL", "the fields ...".
std::string allowed_values(const google::protobuf::FieldDescriptor& field);
// "layers, hidden, ffn, ..."
std::string field_names(const google::protobuf::Descriptor& message);
std::string nearest_field(const google::protobuf::Descriptor& message, std::string_view name);

}  // namespace herdsim
