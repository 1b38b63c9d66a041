#include "tools/scenario/field_origins.h"

#include <fmt/format.h>

#include <utility>

namespace herdsim {
namespace {

// "a.b.c" -> "a.b" -> "a" -> "".
std::string_view enclosing(std::string_view path) {
  const size_t dot = path.rfind('.');
  return dot == std::string_view::npos ? std::string_view{} : path.substr(0, dot);
}

}  // namespace

std::string element_path(std::string_view list, int64_t index) {
  return fmt::format("{}.{}", list, index);
}

std::string path_with_dots(std::string_view path) {
  std::string out;
  for (char c : path) {
    if (c == '[') {
      out += '.';
    } else if (c != ']') {
      out += c;
    }
  }
  return out;
}

const Origin* FieldOrigins::find(std::string_view path) const {
  for (; !path.empty(); path = enclosing(path)) {
    if (const auto it = by_path_.find(path); it != by_path_.end()) return &it->second;
  }
  return nullptr;
}

bool FieldOrigins::is_given(std::string_view path) const {
  const Origin* origin = find(path);
  return origin != nullptr && !origin->comment.starts_with("default") &&
         !origin->comment.starts_with("catalog");
}

void FieldOrigins::erase(std::string_view path) {
  if (const auto it = by_path_.find(path); it != by_path_.end()) by_path_.erase(it);
  const std::string within = std::string(path) + ".";
  auto it = by_path_.lower_bound(within);
  while (it != by_path_.end() && it->first.starts_with(within)) it = by_path_.erase(it);
}

void FieldOrigins::relabel(const std::string& comment) {
  for (auto& [path, origin] : by_path_) origin.comment = comment;
}

void FieldOrigins::overlay(const FieldOrigins& above) {
  for (const auto& [path, origin] : above.by_path_) by_path_.insert_or_assign(path, origin);
}

void SpecReport::add(std::string_view path, std::string problem, std::string allowed,
                     std::string nearest) {
  Fault fault{.file = file_,
              .field = std::string(path),
              .problem = std::move(problem),
              .allowed = std::move(allowed),
              .nearest = std::move(nearest)};
  if (const Origin* origin = origins_.find(path); origin != nullptr && !origin->file.empty()) {
    fault.file = origin->file;
    fault.line = origin->line;
    fault.column = origin->column;
  }
  add(std::move(fault));
}

void SpecReport::add(Fault fault) {
  faulty_.insert(fault.field);
  if (faults_.list().size() >= kMaxFaults) {
    ++dropped_;
    return;
  }
  faults_.add(std::move(fault));
}

bool SpecReport::sound(std::initializer_list<std::string_view> paths) const {
  for (std::string_view path : paths) {
    for (; !path.empty(); path = enclosing(path)) {
      if (faulty_.contains(path)) return false;
    }
  }
  return true;
}

void SpecReport::throw_if_any() const {
  if (dropped_ == 0) return faults_.throw_if_any();
  Faults all = faults_;
  all.add({.file = file_, .problem = "and " + std::to_string(dropped_) + " more faults"});
  all.throw_if_any();
}

}  // namespace herdsim
