#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <vector>

#include "tools/scenario/set_field.h"
#include "tools/scenario/spec_parser.h"

namespace herdsim {
namespace {

namespace pb = google::protobuf;

std::vector<std::string> split_path(const std::string& path) {
  std::vector<std::string> parts;
  for (size_t at = 0; at <= path.size();) {
    const size_t dot = std::min(path.find('.', at), path.size());
    parts.push_back(path.substr(at, dot - at));
    at = dot + 1;
  }
  return parts;
}

std::string escaped(const std::string& text) {
  std::string out = "\"";
  for (char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + '"';
}

class Setter {
 public:
  Setter(const std::string& assignment, SpecReport* report)
      : assignment_(assignment), report_(report) {}

  void run(pb::Message* root) {
    const size_t equals = assignment_.find('=');
    if (equals == std::string::npos || equals == 0) {
      report_->add({.file = option(),
                    .problem = "is not an assignment",
                    .allowed = "FIELD.PATH=VALUE, such as parallel.tp=4"});
      return;
    }
    path_ = assignment_.substr(0, equals);
    value_ = assignment_.substr(equals + 1);
    parts_ = split_path(path_);
    descend(root, 0);
  }

 private:
  std::string option() const { return "--set " + assignment_.substr(0, 200); }
  void fault(std::string problem, std::string allowed = "", std::string nearest = "") {
    report_->add({.file = option(),
                  .field = path_.substr(0, 200),
                  .problem = std::move(problem),
                  .allowed = std::move(allowed),
                  .nearest = std::move(nearest)});
  }

  void descend(pb::Message* message, size_t i) {
    const pb::Descriptor& descriptor = *message->GetDescriptor();
    const pb::FieldDescriptor* field = descriptor.FindFieldByName(parts_[i]);
    if (field == nullptr) {
      const std::string nearest = nearest_field(descriptor, parts_[i]);
      return fault("there is no field \"" + parts_[i].substr(0, 100) + "\" in " + descriptor.name(),
                   nearest.empty() ? field_names(descriptor) : "", nearest);
    }
    const pb::Reflection& reflection = *message->GetReflection();
    const bool last = i + 1 == parts_.size();
    if (field->is_repeated() && !last) return element(message, *field, i + 1);
    if (last) return assign(message, *field);
    if (field->message_type() == nullptr)
      return fault(field->name() + " has no fields", allowed_values(*field));
    descend(reflection.MutableMessage(message, field), i + 1);
  }

  // Where the elements of a list of this language are found by their names, the element called
  // `name`, added if it is new; -1 for other lists.
  static int named_element(pb::Message* message, const pb::FieldDescriptor& field,
                           const std::string& name) {
    const pb::FieldDescriptor* key = field.message_type()->FindFieldByName("name");
    const bool ours = field.message_type()->file()->package() == "herdsim.spec";
    const bool is_number = name.find_first_not_of("0123456789-") == std::string::npos;
    if (key == nullptr || !ours || is_number) return -1;
    const pb::Reflection& reflection = *message->GetReflection();
    const int count = reflection.FieldSize(*message, &field);
    for (int i = 0; i < count; ++i) {
      const pb::Message& element = reflection.GetRepeatedMessage(*message, &field, i);
      if (element.GetReflection()->GetString(element, key) == name) return i;
    }
    pb::Message* added = reflection.AddMessage(message, &field);
    added->GetReflection()->SetString(added, key, name);
    return count;
  }

  // parts_[i] is the index or the name of an element.
  void element(pb::Message* message, const pb::FieldDescriptor& field, size_t i) {
    if (field.message_type() == nullptr) {
      return fault("an element of this list cannot be set alone", "the whole list, as [...]");
    }
    const pb::Reflection& reflection = *message->GetReflection();
    const int count = reflection.FieldSize(*message, &field);
    const std::string part = parts_[i];
    int index = named_element(message, field, part);
    if (index >= 0) {
      // Faults and origins go by index.
      parts_[i] = std::to_string(index);
      std::string before = parts_[0];
      for (size_t k = 1; k < i; ++k) before += "." + parts_[k];
      path_.replace(before.size() + 1, part.size(), parts_[i]);
      note(element_path(before, index));
      return step_into(reflection.MutableRepeatedMessage(message, &field, index), i);
    }
    const auto [end, error] = std::from_chars(part.data(), part.data() + part.size(), index);
    if (error != std::errc() || end != part.data() + part.size() || index < 0 || index >= count) {
      return fault(
          field.name() + " has " + std::to_string(count) + " element" + (count == 1 ? "" : "s"),
          (count > 0 ? "an index up to " + std::to_string(count - 1) + "; " : "") +
              "append one with " + field.name() +
              (field.message_type() != nullptr ? "={...}" : "=VALUE"));
    }
    step_into(reflection.MutableRepeatedMessage(message, &field, index), i);
  }

  // `inner` is the element that parts_[i] means.
  void step_into(pb::Message* inner, size_t i) {
    if (i + 1 < parts_.size()) return descend(inner, i + 1);
    inner->Clear();
    if (parse_braces(inner)) note_fields(*inner, path_);
  }

  void assign(pb::Message* message, const pb::FieldDescriptor& field) {
    const pb::Reflection& reflection = *message->GetReflection();
    if (value_.empty()) {
      reflection.ClearField(message, &field);
      report_->origins().erase(path_);
      return;
    }
    if (field.is_repeated()) return append(message, field);
    if (field.message_type() != nullptr) {
      pb::Message* inner = reflection.MutableMessage(message, &field);
      inner->Clear();
      report_->origins().erase(path_);
      if (parse_braces(inner)) note_fields(*inner, path_);
      return;
    }
    reflection.ClearField(message, &field);
    if (parse_field(field.name() + ": " + literal(field), field, message)) note(path_);
  }

  void append(pb::Message* message, const pb::FieldDescriptor& field) {
    const pb::Reflection& reflection = *message->GetReflection();
    if (value_.front() == '[') {
      reflection.ClearField(message, &field);
      report_->origins().erase(path_);
    }
    const int before = reflection.FieldSize(*message, &field);
    const std::string separator =
        field.message_type() != nullptr && value_.front() == '{' ? " " : ": ";
    if (!parse_field(field.name() + separator + list_literal(field), field, message)) return;
    for (int k = before; k < reflection.FieldSize(*message, &field); ++k) {
      note(element_path(path_, k));
    }
    if (before == 0) note(path_);
  }

  // Values of a list of strings may come without quotes too: a or [a, b].
  std::string list_literal(const pb::FieldDescriptor& field) const {
    if (field.cpp_type() != pb::FieldDescriptor::CPPTYPE_STRING ||
        value_.find_first_of("\"'") != std::string::npos) {
      return value_;
    }
    if (value_.front() != '[' || value_.back() != ']') return escaped(value_);
    std::string text;
    for (size_t at = 1; at < value_.size();) {
      const size_t comma = std::min(value_.find(',', at), value_.size() - 1);
      const size_t first = std::min(value_.find_first_not_of(' ', at), comma);
      const size_t last = value_.find_last_not_of(' ', comma - 1);
      const bool empty = last == std::string::npos || last < first;
      if (!empty)
        text += (text.empty() ? "" : ", ") + escaped(value_.substr(first, last - first + 1));
      at = comma + 1;
    }
    return "[" + text + "]";
  }

  // A value as text format wants it: strings and enum values may come without quotes and in any
  // case.
  std::string literal(const pb::FieldDescriptor& field) const {
    if (field.cpp_type() == pb::FieldDescriptor::CPPTYPE_STRING && value_.front() != '"' &&
        value_.front() != '\'') {
      return escaped(value_);
    }
    if (field.enum_type() != nullptr) {
      std::string upper = value_;
      std::transform(upper.begin(), upper.end(), upper.begin(), [](char c) {
        return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c == '-' ? '_' : c;
      });
      return upper;
    }
    return value_;
  }

  bool parse_braces(pb::Message* inner) {
    if (value_.size() < 2 || value_.front() != '{' || value_.back() != '}') {
      fault("is a part with fields of its own",
            "{...} with " + field_names(*inner->GetDescriptor()));
      return false;
    }
    return parse(value_.substr(1, value_.size() - 2), inner);
  }

  // Text of that one field and nothing behind it: a value must not smuggle in others.
  bool parse_field(const std::string& text, const pb::FieldDescriptor& field,
                   pb::Message* message) {
    const std::unique_ptr<pb::Message> alone(message->New());
    if (!parse(text, alone.get())) return false;
    std::vector<const pb::FieldDescriptor*> fields;
    alone->GetReflection()->ListFields(*alone, &fields);
    const bool is_list = field.is_repeated() && value_.front() == '[';
    const bool one = fields.size() <= 1 && (!field.is_repeated() || is_list ||
                                            alone->GetReflection()->FieldSize(*alone, &field) == 1);
    if (!one) fault("is more than one value");
    if (one) message->MergeFrom(*alone);
    return one;
  }

  bool parse(const std::string& text, pb::Message* message) {
    report_->origins().set(path_, {.file = option()});
    return parse_fragment(text, path_, message, report_);
  }

  // Every field of a part that was set as a whole: its base must not claim them.
  void note_fields(const pb::Message& part, const std::string& path) {
    note(path);
    std::vector<const pb::FieldDescriptor*> fields;
    part.GetReflection()->ListFields(part, &fields);
    for (const pb::FieldDescriptor* field : fields) {
      const std::string inner = path + "." + field->name();
      if (field->message_type() != nullptr && !field->is_repeated()) {
        note_fields(part.GetReflection()->GetMessage(part, field), inner);
      } else {
        note(inner);
      }
    }
  }
  void note(const std::string& path) {
    report_->origins().set(path, {.file = option(), .comment = "--set"});
  }

  const std::string& assignment_;
  SpecReport* report_;
  std::string path_, value_;
  std::vector<std::string> parts_;
};

}  // namespace

void set_field(const std::string& assignment, pb::Message* message, SpecReport* report) {
  Setter(assignment, report).run(message);
}

}  // namespace herdsim
