#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/message.h>
#include <google/protobuf/text_format.h>
#include <google/protobuf/util/json_util.h>
#include <google/protobuf/util/type_resolver.h>
#include <google/protobuf/util/type_resolver_util.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <memory>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "tools/scenario/json_places.h"
#include "tools/scenario/spec_parser.h"

namespace herdsim {
namespace {

namespace pb = google::protobuf;

constexpr char kTypeUrl[] = "type.googleapis.com";

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

// Every field of the language that `matches`, with its path; elements of lists without an index.
void find_fields(const pb::Descriptor& message, const std::string& prefix,
                 const std::function<bool(const pb::FieldDescriptor&)>& matches,
                 std::vector<std::pair<std::string, const pb::FieldDescriptor*>>* found) {
  constexpr int kDeepest = 8;
  if (std::count(prefix.begin(), prefix.end(), '.') > kDeepest) return;
  for (int i = 0; i < message.field_count(); ++i) {
    const pb::FieldDescriptor* field = message.field(i);
    if (matches(*field)) found->emplace_back(prefix + field->name(), field);
    if (field->message_type() != nullptr) {
      find_fields(*field->message_type(), prefix + field->name() + ".", matches, found);
    }
  }
}

// The field that a parser only knows by its last name: its path if it is the only one of that name,
// and what it takes.
std::pair<std::string, std::string> field_of_name(const pb::Descriptor& root,
                                                  const std::string& name) {
  std::vector<std::pair<std::string, const pb::FieldDescriptor*>> found;
  find_fields(
      root, "", [&](const pb::FieldDescriptor& field) { return field.name() == name; }, &found);
  if (found.empty()) return {};
  return {found.size() == 1 ? found.front().first : name, allowed_values(*found.front().second)};
}

// "parallel." for the message type of field parallel; "" for the root and for a type with several
// fields.
std::string prefix_of_type(const pb::Descriptor& root, const pb::Descriptor& type) {
  std::vector<std::pair<std::string, const pb::FieldDescriptor*>> found;
  find_fields(
      root, "", [&](const pb::FieldDescriptor& field) { return field.message_type() == &type; },
      &found);
  return found.size() == 1 ? found.front().first + "." : "";
}

std::string without_period(std::string text) {
  while (!text.empty() && (text.back() == '.' || text.back() == ' ')) text.pop_back();
  return text;
}

// What protobuf quotes from the text may be as long as the text.
std::string shortened(std::string text) {
  constexpr size_t kLongest = 200;
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
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
    fault.problem = shortened(without_period(message));
    std::string name = name_before(text_of(line), static_cast<size_t>(column));
    if (message.starts_with("Unknown enumeration value")) {
      const std::string value = quoted_word(message, 0);
      fault.problem = "\"" + shortened(value) + "\" is not one of its values";
      name = quoted_word(message, 1);
      move_back_to(value, line, column, &fault);
    } else if (message.starts_with("Invalid value for boolean field")) {
      fault.problem = "\"" + shortened(quoted_word(message, 1)) + "\" is neither";
      name = quoted_word(message, 0);
    } else if (message.starts_with("Non-repeated field")) {
      fault.problem = "is given twice";
      name = quoted_word(message, 0);
    }
    std::tie(fault.field, fault.allowed) = field_of_name(*root_.GetDescriptor(), name);
    if (fault.problem == "is given twice") fault.allowed.clear();
    report(std::move(fault));
  }

  // Unknown fields, which the parser skips so that it can go on and find the others.
  void AddWarning(int line, pb::io::ColumnNumber column, const std::string& message) override {
    Fault fault = at(line, column);
    fault.problem = shortened(without_period(message));
    if (message.starts_with("Message type")) {
      const std::string name = quoted_word(message, 1);
      fault.field = shortened(name);
      if (const pb::Descriptor* descriptor = descriptor_named(root_, quoted_word(message, 0))) {
        fault.problem = "there is no field \"" + shortened(name) + "\" here";
        fault.nearest = nearest_field(*descriptor, name);
        if (fault.nearest.empty()) fault.allowed = field_names(*descriptor);
        fault.field = prefix_of_type(*root_.GetDescriptor(), *descriptor) + fault.field;
      }
      move_back_to(name, line, column, &fault);
    }
    report(std::move(fault));
  }

 private:
  std::string_view text_of(int line) const {
    return line >= 0 && static_cast<size_t>(line) < lines_.size()
               ? lines_[static_cast<size_t>(line)]
               : std::string_view{};
  }
  // Protobuf points behind what it has read.
  void move_back_to(const std::string& word, int line, int column, Fault* fault) const {
    const size_t start = text_of(line).rfind(word, static_cast<size_t>(column));
    if (fault->line > 0 && start != std::string_view::npos)
      fault->column = static_cast<int>(start) + 1;
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
      // Of one value the first fault says it; what the parser makes of the rest would mislead.
      if (!std::exchange(told_, true)) report_->add(fixed_path_, fault.problem, fault.allowed, fault.nearest);
      return;
    }
    report_->add(std::move(fault));
  }

  const SpecSource& source_;
  const pb::Message& root_;
  std::vector<std::string_view> lines_;
  std::string fixed_path_;
  bool told_ = false;
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
  parser.AllowPartialMessage(true);  // what is missing may be in a base
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
  if (close == std::string::npos)
    return {"", message.substr(std::min(message.find_first_not_of(": "), message.size()))};
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
  std::set<std::string> seen;
  bool known = true;
  for (const JsonPlace& place : json_places(source.text)) {
    if (place.path.starts_with('.')) break;  // a list is no spec; the parser says so
    if (!seen.insert(place.path).second) {
      report->add({.file = source.file,
                   .line = place.line,
                   .column = place.column,
                   .field = shortened(prefix + place.path),
                   .problem = "is given twice"});
    }
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
                   .problem = "there is no field \"" + shortened(missing) + "\" here",
                   .allowed = nearest.empty() ? field_names(*stopped_at) : "",
                   .nearest = nearest});
      known = false;
    }
  }
  pb::util::JsonParseOptions options;
  options.ignore_unknown_fields = !known;  // they have been reported
  // By way of the wire format, since JsonStringToMessage() insists on required fields, which may be
  // in a base.
  const std::unique_ptr<pb::util::TypeResolver> resolver(pb::util::NewTypeResolverForDescriptorPool(
      kTypeUrl, message->GetDescriptor()->file()->pool()));
  std::string wire;
  const auto status = pb::util::JsonToBinaryString(
      resolver.get(), std::string(kTypeUrl) + "/" + message->GetDescriptor()->full_name(),
      source.text, &wire, options);
  if (status.ok() && message->ParsePartialFromString(wire)) return;
  const auto [path, problem] = split_json_error(std::string(status.message()));
  Fault fault{.file = source.file, .field = shortened(prefix + path)};
  fault.problem = shortened(without_period(problem.substr(0, problem.find('\n'))));
  if (const size_t type = fault.problem.find(" for type"); type != std::string::npos)
    fault.problem.resize(type);
  if (const Origin* origin = path.empty() ? nullptr : here.find(path)) {
    fault.line = origin->line;
    fault.column = origin->column;
    fault.allowed =
        field_of_name(*message->GetDescriptor(), path.substr(path.rfind('.') + 1)).second;
  } else if (const auto place = json_syntax_error(source.text)) {
    fault.line = place->line;
    fault.column = place->column;
  } else if (const auto number = json_number_too_large(source.text)) {
    fault.line = number->line;
    fault.column = number->column;
    fault.field = shortened(prefix + number->path);
    fault.problem = "is beyond what a number can be";
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
  parser.AllowPartialMessage(true);
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
  if (name.size() < 3) return "";  // everything short is near to everything short
  std::vector<std::string> names;
  for (int i = 0; i < message.field_count(); ++i) names.push_back(message.field(i)->name());
  return nearest_name(name, names);
}

}  // namespace herdsim
