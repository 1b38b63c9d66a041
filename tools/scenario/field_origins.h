// Where each field of a spec comes from, and the faults that say so.
//
// Paths are those of `--set`: "parallel.tp", "cluster.degraded.0.gpu".
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <set>
#include <string>
#include <string_view>

#include "sim/base/error.h"

namespace herdsim {

struct Origin {
  std::string file;          // or the --set option as it was given
  int line = 0, column = 0;  // 1-based; 0 where there is no file
  std::string comment;  // for the effective spec: "mine.textproto:7", "catalog model llama3-405b",
                        // "--set", "default"
};

// "cluster.degraded" and 0: "cluster.degraded.0".
std::string element_path(std::string_view list, int64_t index);

// "cluster.degraded[0].gpu", as other folders write it: "cluster.degraded.0.gpu".
std::string path_with_dots(std::string_view path);

class FieldOrigins {
 public:
  void set(std::string path, Origin origin) {
    by_path_.insert_or_assign(std::move(path), std::move(origin));
  }
  // Of the field, or else of the innermost part around it that has an origin. Null if there is
  // none.
  const Origin* find(std::string_view path) const;
  // Whether a user wrote it, in a file or with --set: no default, nor the catalogue's.
  bool is_given(std::string_view path) const;
  // Forgets the field and all within it.
  void erase(std::string_view path);
  // Gives every origin this comment.
  void relabel(const std::string& comment);
  // Takes over every origin of `above`.
  void overlay(const FieldOrigins& above);

 private:
  std::map<std::string, Origin, std::less<>> by_path_;
};

// Collects faults of fields and remembers which fields they were, so that a rule over several
// fields is only checked where each of them is sound.
class SpecReport {
 public:
  explicit SpecReport(std::string file) : file_(std::move(file)) {}

  const std::string& file() const { return file_; }
  FieldOrigins& origins() { return origins_; }
  const FieldOrigins& origins() const { return origins_; }
  // Adds a fault at the field's origin. Beyond kMaxFaults they are counted, not kept.
  void add(std::string_view path, std::string problem, std::string allowed = "",
           std::string nearest = "");
  void add(Fault fault);
  // Counts the field as faulty without a fault of its own.
  void mark_faulty(std::string path) { faulty_.insert(std::move(path)); }
  // No fault so far concerns any of these fields, or a part that holds one of them.
  bool sound(std::initializer_list<std::string_view> paths) const;
  bool empty() const { return faults_.empty(); }
  // Throws: SpecError with every fault so far.
  void throw_if_any() const;

 private:
  static constexpr size_t kMaxFaults = 50;
  std::string file_;
  FieldOrigins origins_;
  Faults faults_;
  size_t dropped_ = 0;
  std::set<std::string, std::less<>> faulty_;
};

}  // namespace herdsim
