#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/json_util.h>

#include <cctype>
#include <vector>

#include "tools/scenario/json_places.h"
#include "tools/scenario/spec_parser.h"

namespace herdsim {
namespace {

namespace pb = google::protobuf;

bool is_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

// The quoted word number `n` of a message of protobuf's; "" if it has fewer.
std::string quoted_word(const std::string& message, int n) {
  size_t at = 0;
  for (int quote = 0; quote < 2 * n + 1; ++quote) {
    at = message.find('"', at);
    if (at == std::string::npos) return "";
    ++at;
  }
  return message.substr(at, message.find('"', at) - at);
}

const pb::Descriptor* descriptor_named(const pb::Message& root, const std::string& full_name) {
  return root.GetDescriptor()->file()->pool()->FindMessageTypeByName(full_name);
}

// The name of the field before a place in a line: of "  tp: x" with the place at x, "tp".
std::string name_before(std::string_view line, size_t column) {
  size_t end = std::min(column, line.size());
  while (end > 0 && !is_name_character(line[end - 1])) --end;
  size_t start = end;
  while (start > 0 && is_name_character(line[start - 1])) --start;
  return std::string(line.substr(start, end - start));
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    lines.push_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

// Every field of that name, anywhere in the language, takes the same values or nothing is said.
std::string allowed_of_name(const pb::Descriptor& message, const std::string& name, int depth = 0) {
  if (const pb::FieldDescriptor* field = message.FindFieldByName(name))
    return allowed_values(*field);
  for (int i = 0; i < message.field_count() && depth < 4; ++i) {
    if (message.field(i)->message_type() == nullptr) continue;
    std::string found = allowed_of_name(*message.field(i)->message_type(), name, depth + 1);
    if (!found.empty()) return found;
  }
  return "";
}

// Turns what protobuf's text parser says into faults.
class Collector : public pb::io::ErrorCollector {
 public:
  Collector(const SpecSource& source, const pb::Message& root, std::string fixed_path,
            SpecReport* report)
      : source_(source),
        root_(root),
        lines_(lines_of(source.text)),
        fixed_path_(std::move(fixed_path)),
        report_(report) {}

  void AddError(int line, pb::io::ColumnNumber column, const std::string& message) override {
    Fault fault = at(line, column);
    fault.problem = message;
    const std::string before = name_before(text_of(line), static_cast<size_t>(column));
    if (message.starts_with("Unknown enumeration value")) {
      const std::string value = quoted_word(message, 0);
      fault.field = quoted_word(message, 1);
      fault.problem = "\"" + value + "\" is not one of its values";
      fault.allowed = allowed_of_name(*root_.GetDescriptor(), fault.field);
    } else if (message.starts_with("Non-repeated field")) {
      fault.field = quoted_word(message, 0);
      fault.problem = "is given twice";
    } else if (message.starts_with("Expected") || message.starts_with("Integer out of range")) {
      std::string allowed = allowed_of_name(*root_.GetDescriptor(), before);
      if (!allowed.empty()) {
        fault.field = before;
        fault.allowed = std::move(allowed);
      }
    }
    report(std::move(fault));
  }

  // Unknown fields, which the parser skips so that it can go on and find the others.
  void AddWarning(int line, pb::io::ColumnNumber column, const std::string& message) override {
    Fault fault = at(line, column);
    fault.problem = message;
    if (message.starts_with("Message type")) {
      const std::string name = quoted_word(message, 1);
      if (const pb::Descriptor* descriptor = descriptor_named(root_, quoted_word(message, 0))) {
        fault.problem = "there is no field \"" + name + "\" here";
        fault.nearest = nearest_field(*descriptor, name);
        if (fault.nearest.empty()) fault.allowed = field_names(*descriptor);
      }
      fault.field = name;
      // Protobuf points behind the name.
      const size_t start = text_of(line).rfind(name, static_cast<size_t>(column));
      if (fault.line > 0 && start != std::string_view::npos)
        fault.column = static_cast<int>(start) + 1;
    }
    report(std::move(fault));
  }

 private:
  std::string_view text_of(int line) const {
    return line >= 0 && static_cast<size_t>(line) < lines_.size()
               ? lines_[static_cast<size_t>(line)]
               : std::string_view{};
  }
  Fault at(int line, int column) const {
    Fault fault{.file = source_.file};
    if (fixed_path_.empty() && line >= 0) {
      fault.line = line + 1;
      fault.column = column + 1;
    }
    return fault;
  }
  void report(Fault fault) {
    if (!fixed_path_.empty()) {
      return report_->add(fixed_path_, fault.problem, fault.allowed, fault.nearest);
    }
    report_->add(std::move(fault));
  }

  const SpecSource& source_;
  const pb::Message& root_;
  std::vector<std::string_view> lines_;
  std::string fixed_path_;
  SpecReport* report_;
};

Origin origin_at(const SpecSource& source, int line, int column) {
  Origin origin{.file = source.file, .line = line, .column = column};
  origin.comment = source.file + ":" + std::to_string(line);
  return origin;
}

// Notes the place of every field of a parsed message.
void note_text_places(const pb::Message& message, const pb::TextFormat::ParseInfoTree& tree,
                      const SpecSource& source, const std::string& prefix, FieldOrigins* origins) {
  std::vector<const pb::FieldDescriptor*> fields;
  const pb::Reflection& reflection = *message.GetReflection();
  reflection.ListFields(message, &fields);
  for (const pb::FieldDescriptor* field : fields) {
    const int count = field->is_repeated() ? reflection.FieldSize(message, field) : 1;
    for (int i = 0; i < count; ++i) {
      const int index = field->is_repeated() ? i : -1;
      const pb::TextFormat::ParseLocation place = tree.GetLocation(field, index);
      const std::string whole = prefix + field->name();
      const std::string path = field->is_repeated() ? element_path(whole, i) : whole;
      const Origin origin = origin_at(source, place.line + 1, place.column + 1);
      if (i == 0) origins->set(whole, origin);
      origins->set(path, origin);
      if (field->message_type() == nullptr) continue;
      const pb::TextFormat::ParseInfoTree* nested = tree.GetTreeForNested(field, index);
      if (nested == nullptr) continue;
      const pb::Message& part = field->is_repeated()
                                    ? reflection.GetRepeatedMessage(message, field, i)
                                    : reflection.GetMessage(message, field);
      note_text_places(part, *nested, source, path + ".", origins);
    }
  }
}

void parse_text(const SpecSource& source, const std::string& prefix, pb::Message* message,
                FieldOrigins* origins, SpecReport* report) {
  pb::TextFormat::Parser parser;
  Collector collector(source, *message, "", report);
  pb::TextFormat::ParseInfoTree tree;
  parser.RecordErrorsTo(&collector);
  parser.AllowUnknownField(true);
  parser.WriteLocationsTo(&tree);
  parser.ParseFromString(source.text, message);
  note_text_places(*message, tree, source, prefix, origins);
}

// The field at the end of a path without indices ("cluster.degraded.0.gpu"); the deepest message
// that has no such field comes back in `stopped_at`, with the name that it lacks.
bool field_exists(const pb::Descriptor* descriptor, std::string_view path,
                  const pb::Descriptor** stopped_at, std::string* missing) {
  while (!path.empty()) {
    const size_t dot = path.find('.');
    const std::string part(path.substr(0, dot));
    path = dot == std::string_view::npos ? std::string_view{} : path.substr(dot + 1);
    if (!part.empty() && std::isdigit(static_cast<unsigned char>(part.front())) != 0) continue;
    if (descriptor == nullptr) return true;  // inside a value that is no message: its own fault
    const pb::FieldDescriptor* field = descriptor->FindFieldByName(part);
    if (field == nullptr) {
      *stopped_at = descriptor;
      *missing = part;
      return false;
    }
    descriptor = field->message_type();
  }
  return true;
}

// "(cluster.degraded[0].gpu): invalid value ..." -> path "cluster.degraded.0.gpu" and the rest.
std::pair<std::string, std::string> split_json_error(const std::string& message) {
  const size_t close = message.starts_with('(') ? message.find(')') : std::string::npos;
  if (close == std::string::npos) return {"", message};
  std::string path;
  for (char c : message.substr(1, close - 1)) {
    if (c == '[') {
      path += '.';
    } else if (c != ']') {
      path += c;
    }
  }
  const size_t rest = message.find_first_not_of(": ", close + 1);
  return {path, rest == std::string::npos ? "" : message.substr(rest)};
}

void parse_json(const SpecSource& source, const std::string& prefix, pb::Message* message,
                FieldOrigins* origins, SpecReport* report) {
  FieldOrigins here;
  bool known = true;
  for (const JsonPlace& place : json_places(source.text)) {
    here.set(place.path, origin_at(source, place.line, place.column));
    const pb::Descriptor* stopped_at = nullptr;
    std::string missing;
    if (field_exists(message->GetDescriptor(), place.path, &stopped_at, &missing)) {
      origins->set(prefix + place.path, origin_at(source, place.line, place.column));
    } else if (place.path.ends_with(missing)) {  // once, not again for all that it holds
      const std::string nearest = nearest_field(*stopped_at, missing);
      report->add({.file = source.file,
                   .line = place.line,
                   .column = place.column,
                   .field = prefix + place.path,
                   .problem = "there is no field \"" + missing + "\" here",
                   .allowed = nearest.empty() ? field_names(*stopped_at) : "",
                   .nearest = nearest});
      known = false;
    }
  }
  pb::util::JsonParseOptions options;
  options.ignore_unknown_fields = !known;  // they have been reported
  const auto status = pb::util::JsonStringToMessage(source.text, message, options);
  if (status.ok()) return;
  auto [path, problem] = split_json_error(std::string(status.message()));
  Fault fault{.file = source.file,
              .field = prefix + path,
              .problem = problem.substr(0, problem.find('\n'))};
  if (const Origin* origin = path.empty() ? nullptr : here.find(path)) {
    fault.line = origin->line;
    fault.column = origin->column;
    const std::string name = path.substr(path.rfind('.') + 1);
    fault.allowed = allowed_of_name(*message->GetDescriptor(), name);
    if (const size_t type = fault.problem.find(" for type"); type != std::string::npos)
      fault.problem.resize(type);
  }
  report->add(std::move(fault));
}

}  // namespace

void parse_spec(const SpecSource& source, std::string_view prefix, pb::Message* message,
                FieldOrigins* origins, SpecReport* report) {
  if (looks_like_json(source.text)) {
    parse_json(source, std::string(prefix), message, origins, report);
  } else {
    parse_text(source, std::string(prefix), message, origins, report);
  }
}

bool parse_fragment(const std::string& text, const std::string& path, pb::Message* message,
                    SpecReport* report) {
  const SpecSource source{.name = "", .file = "", .text = text};
  Collector collector(source, *message, path, report);
  pb::TextFormat::Parser parser;
  parser.RecordErrorsTo(&collector);
  parser.AllowUnknownField(true);
  return parser.MergeFromString(text, message);
}

std::string allowed_values(const pb::FieldDescriptor& field) {
  switch (field.cpp_type()) {
    case pb::FieldDescriptor::CPPTYPE_BOOL:
      return "true or false";
    case pb::FieldDescriptor::CPPTYPE_DOUBLE:
    case pb::FieldDescriptor::CPPTYPE_FLOAT:
      return "a number";
    case pb::FieldDescriptor::CPPTYPE_STRING:
      return "a string in quotes";
    case pb::FieldDescriptor::CPPTYPE_MESSAGE:
      return field.name() + " { ... } with " + field_names(*field.message_type());
    case pb::FieldDescriptor::CPPTYPE_ENUM: {
      std::string all;
      for (int i = 0; i < field.enum_type()->value_count(); ++i) {
        all += (i == 0 ? "" : ", ") + field.enum_type()->value(i)->name();
      }
      return all;
    }
    case pb::FieldDescriptor::CPPTYPE_INT32:
    case pb::FieldDescriptor::CPPTYPE_INT64:
    case pb::FieldDescriptor::CPPTYPE_UINT32:
    case pb::FieldDescriptor::CPPTYPE_UINT64:
      return "a whole number";
  }
  return "";
}

std::string field_names(const pb::Descriptor& message) {
  std::string all;
  for (int i = 0; i < message.field_count(); ++i)
    all += (i == 0 ? "" : ", ") + message.field(i)->name();
  return all;
}

std::string nearest_field(const pb::Descriptor& message, std::string_view name) {
  std::vector<std::string> names;
  for (int i = 0; i < message.field_count(); ++i) names.push_back(message.field(i)->name());
  return nearest_name(name, names);
}

}  // namespace herdsim
