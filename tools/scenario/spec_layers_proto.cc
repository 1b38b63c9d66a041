#include <fmt/format.h>
#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>

#include <cmath>
#include <filesystem>
#include <memory>
#include <vector>

#include "tools/scenario/scenario.pb.h"
#include "tools/scenario/spec_layers.h"
#include "tools/scenario/spec_parser.h"

namespace herdsim {
namespace {

namespace pb = google::protobuf;

std::vector<const pb::FieldDescriptor*> present_fields(const pb::Message& message) {
  std::vector<const pb::FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  return fields;
}

// Lists that `over` gives are not appended to those of `under`.
void clear_lists_given_in(const pb::Message& over, pb::Message* under, const std::string& prefix,
                          FieldOrigins* under_origins) {
  const pb::Reflection& reflection = *under->GetReflection();
  for (const pb::FieldDescriptor* field : present_fields(over)) {
    if (field->is_repeated()) {
      reflection.ClearField(under, field);
      under_origins->erase(prefix + field->name());
    } else if (field->message_type() != nullptr) {
      clear_lists_given_in(reflection.GetMessage(over, field),
                           reflection.MutableMessage(under, field), prefix + field->name() + ".",
                           under_origins);
    }
  }
}

std::string get_string(const pb::Message& message, const char* name) {
  const pb::FieldDescriptor* field = message.GetDescriptor()->FindFieldByName(name);
  return field == nullptr ? "" : message.GetReflection()->GetString(message, field);
}

constexpr int kMaxBases = 8;

// `under` without its own base, with the origins below `prefix`.
struct Layer {
  std::unique_ptr<pb::Message> message;
  FieldOrigins origins;
};

// Throws: SpecError
Layer load_layer(const SpecSource& source, CatalogKind kind, const std::string& prefix,
                 const pb::Message& like, SpecReport* report) {
  Layer layer{.message = std::unique_ptr<pb::Message>(like.New())};
  FieldOrigins places;
  parse_spec(source, prefix, layer.message.get(), &places, report);
  locate_bases(source, layer.message.get());
  if (source.from_catalog && kind != CatalogKind::kScenarios) {
    places.relabel(std::string("catalog ") + std::string(catalog_kind(kind).singular) + " " +
                   source.name);
  }
  layer.origins = std::move(places);
  return layer;
}

void check_number(const std::string& path, double value, const pb::FieldDescriptor& field,
                  SpecReport* report, double* nearest) {
  const spec::Range& range = field.options().GetExtension(spec::range);
  const bool below =
      (range.has_min() && value < range.min()) || (range.has_above() && value <= range.above());
  const bool above = range.has_max() && value > range.max();
  *nearest = value;
  if (std::isfinite(value) && !below && !above) return;
  std::string allowed =
      field.cpp_type() == pb::FieldDescriptor::CPPTYPE_DOUBLE ? "a number" : "a whole number";
  if (range.has_min()) allowed += fmt::format(" from {}", range.min());
  if (range.has_above()) allowed += fmt::format(" above {}", range.above());
  if (range.has_max()) allowed += fmt::format(" up to {}", range.max());
  report->add(path, fmt::format("{} is out of range", value), allowed);
  *nearest = range.has_max() && value > range.max() ? range.max()
             : range.has_min()                      ? range.min()
                                                    : range.max();
}

bool is_printable(const std::string& text) {
  for (char c : text) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) return false;
  }
  return true;
}

void check_value(const std::string& path, pb::Message* message, const pb::FieldDescriptor* field,
                 int index, SpecReport* report) {
  const pb::Reflection& reflection = *message->GetReflection();
  const bool list = field->is_repeated();
  double nearest = 0;
  switch (field->cpp_type()) {
    case pb::FieldDescriptor::CPPTYPE_INT64: {
      const int64_t value = list ? reflection.GetRepeatedInt64(*message, field, index)
                                 : reflection.GetInt64(*message, field);
      check_number(path, static_cast<double>(value), *field, report, &nearest);
      if (nearest == static_cast<double>(value)) return;
      if (list) {
        reflection.SetRepeatedInt64(message, field, index, static_cast<int64_t>(nearest));
      } else {
        reflection.SetInt64(message, field, static_cast<int64_t>(nearest));
      }
      return;
    }
    case pb::FieldDescriptor::CPPTYPE_DOUBLE: {
      const double value = list ? reflection.GetRepeatedDouble(*message, field, index)
                                : reflection.GetDouble(*message, field);
      check_number(path, value, *field, report, &nearest);
      if (nearest == value) return;
      if (list) {
        reflection.SetRepeatedDouble(message, field, index, nearest);
      } else {
        reflection.SetDouble(message, field, nearest);
      }
      return;
    }
    case pb::FieldDescriptor::CPPTYPE_STRING: {
      const std::string value = list ? reflection.GetRepeatedString(*message, field, index)
                                     : reflection.GetString(*message, field);
      const auto clear = [&] {
        if (list) {
          reflection.SetRepeatedString(message, field, index, "");
        } else {
          reflection.SetString(message, field, "");
        }
      };
      if (value.size() > 4096 || !is_printable(value)) {
        report->add(path, "is not one line of text", "up to 4,096 printable characters");
        return clear();
      }
      try {
        if (!value.empty()) check_is_text(value + ".", "");
      } catch (const SpecError&) {
        report->add(path, "is not UTF-8 text");
        clear();
      }
      return;
    }
    case pb::FieldDescriptor::CPPTYPE_MESSAGE:
      check_fields(path + ".",
                   list ? reflection.MutableRepeatedMessage(message, field, index)
                        : reflection.MutableMessage(message, field),
                   report);
      return;
    case pb::FieldDescriptor::CPPTYPE_BOOL:
    case pb::FieldDescriptor::CPPTYPE_ENUM:
    case pb::FieldDescriptor::CPPTYPE_UINT64:
    case pb::FieldDescriptor::CPPTYPE_INT32:
    case pb::FieldDescriptor::CPPTYPE_UINT32:
    case pb::FieldDescriptor::CPPTYPE_FLOAT:
      return;
  }
}

void print_line(int depth, const std::string& text, const Origin* origin, std::string* out) {
  constexpr size_t kCommentColumn = 44;
  std::string line(static_cast<size_t>(depth) * 2, ' ');
  line += text;
  if (origin != nullptr && !origin->comment.empty()) {
    line.resize(std::max(line.size() + 1, kCommentColumn), ' ');
    line += "# " + origin->comment;
  }
  *out += line + '\n';
}

std::string value_text(const pb::Message& message, const pb::FieldDescriptor* field, int index) {
  std::string text;
  pb::TextFormat::PrintFieldValueToString(message, field, index, &text);
  return text;
}

void print_fields(const pb::Message& message, const FieldOrigins& origins,
                  const std::string& prefix, int depth, std::string* out) {
  const pb::Reflection& reflection = *message.GetReflection();
  for (const pb::FieldDescriptor* field : present_fields(message)) {
    const std::string path = prefix + field->name();
    const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    if (field->message_type() != nullptr) {
      for (int i = 0; i < count; ++i) {
        print_line(depth, field->name() + " {", nullptr, out);
        const bool list = field->is_repeated();
        print_fields(list ? reflection.GetRepeatedMessage(message, field, i)
                          : reflection.GetMessage(message, field),
                     origins, (list ? element_path(path, i) : path) + ".", depth + 1, out);
        print_line(depth, "}", nullptr, out);
      }
    } else if (field->is_repeated()) {
      std::string list;
      for (int i = 0; i < count; ++i) list += (i == 0 ? "" : ", ") + value_text(message, field, i);
      print_line(depth, field->name() + ": [" + list + "]", origins.find(path), out);
    } else {
      print_line(depth, field->name() + ": " + value_text(message, field, -1), origins.find(path),
                 out);
    }
  }
}

}  // namespace

void lay_over(const pb::Message& under, const FieldOrigins& under_origins, pb::Message* over,
              FieldOrigins* origins) {
  std::unique_ptr<pb::Message> merged(under.New());
  merged->CopyFrom(under);
  FieldOrigins merged_origins = under_origins;
  clear_lists_given_in(*over, merged.get(), "", &merged_origins);
  merged->MergeFrom(*over);
  merged_origins.overlay(*origins);
  over->GetReflection()->Swap(over, merged.get());
  *origins = std::move(merged_origins);
}

void locate_bases(const SpecSource& source, pb::Message* message) {
  const std::filesystem::path folder = std::filesystem::path(source.file).parent_path();
  if (source.from_catalog || folder.empty()) return;
  const pb::Reflection& reflection = *message->GetReflection();
  for (const pb::FieldDescriptor* field : present_fields(*message)) {
    if (field->message_type() != nullptr && !field->is_repeated()) {
      locate_bases(source, reflection.MutableMessage(message, field));
      continue;
    }
    // A base may be a name of the catalogue; a log and a rank map are always files.
    const bool always_a_file = field->name() == "failure_log" || field->name() == "rank_map";
    if (field->name() != "base" && !always_a_file) continue;
    const std::string path = reflection.GetString(*message, field);
    const bool is_file = always_a_file ? !path.empty() : is_spec_file(path);
    if (is_file && !std::filesystem::path(path).is_absolute())
      reflection.SetString(message, field, (folder / path).string());
  }
}

void resolve_base(CatalogKind kind, const std::string& prefix, pb::Message* part,
                  SpecReport* report) {
  const pb::FieldDescriptor* base_field = part->GetDescriptor()->FindFieldByName("base");
  const pb::FieldDescriptor* name_field = part->GetDescriptor()->FindFieldByName("name");
  const pb::Reflection& reflection = *part->GetReflection();
  const std::string base_path = prefix + "base";
  std::string first_name;
  for (int depth = 0; reflection.HasField(*part, base_field); ++depth) {
    const std::string base = get_string(*part, "base");
    if (depth == kMaxBases) {
      report->add(base_path,
                  "bases go round in a circle, or are more than " + std::to_string(kMaxBases));
      break;
    }
    reflection.ClearField(part, base_field);
    try {
      const SpecSource source = find_spec(kind, base);
      Layer layer = load_layer(source, kind, prefix, *part, report);
      if (first_name.empty()) first_name = source.name;
      lay_over(*layer.message, layer.origins, part, &report->origins());
    } catch (const SpecError& error) {
      for (const Fault& fault : error.faults()) {
        report->add(base_path, (fault.file.empty() ? "" : fault.file + " ") + fault.problem,
                    fault.allowed, fault.nearest);
      }
      // What this part lacks is not to be reported again, field by field.
      report->mark_faulty(prefix.empty() ? base_path : prefix.substr(0, prefix.size() - 1));
      break;
    }
  }
  reflection.ClearField(part, base_field);
  if (!reflection.HasField(*part, name_field) && !first_name.empty()) {
    reflection.SetString(part, name_field, first_name);
    if (const Origin* origin = report->origins().find(base_path))
      report->origins().set(prefix + "name", *origin);
  }
}

void check_fields(const std::string& prefix, pb::Message* message, SpecReport* report) {
  const pb::Reflection& reflection = *message->GetReflection();
  for (const pb::FieldDescriptor* field : present_fields(*message)) {
    const int count = field->is_repeated() ? reflection.FieldSize(*message, field) : 1;
    for (int i = 0; i < count; ++i) {
      const std::string whole = prefix + field->name();
      const std::string path = field->is_repeated() ? element_path(whole, i) : whole;
      check_value(path, message, field, i, report);
    }
  }
  const pb::Descriptor& descriptor = *message->GetDescriptor();
  for (int i = 0; i < descriptor.field_count(); ++i) {
    const pb::FieldDescriptor* field = descriptor.field(i);
    if (!field->options().GetExtension(spec::required_field) ||
        reflection.HasField(*message, field))
      continue;
    const std::string path = prefix + field->name();
    if (report->sound({path})) report->add(path, "is missing", allowed_values(*field));
    if (field->cpp_type() == pb::FieldDescriptor::CPPTYPE_INT64)
      reflection.SetInt64(message, field, 1);
  }
}

std::string annotated_text(const pb::Message& message, const FieldOrigins& origins) {
  std::string out;
  print_fields(message, origins, "", 0, &out);
  return out;
}

}  // namespace herdsim
