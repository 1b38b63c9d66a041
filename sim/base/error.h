// What is wrong with the input. Every fault is collected before anything is thrown, so that a user mends a file once.
//
//   Faults faults;
//   if (layers <= 0) faults.add({.field = "model.layers", .problem = "-3 is not positive", .allowed = "1 or more"});
//   faults.throw_if_any();                     // SpecError; main() prints it and exits with 2
#pragma once

#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace herdsim {

// One fault of an input. `text()` is "file:line:column: field: problem; allowed: ...; did you mean "x"?", leaving out
// what is not known.
struct Fault {
  std::string file;
  int line = 0;    // 1-based; 0 where the place is unknown, such as a --set
  int column = 0;  // 1-based
  std::string field;
  std::string problem;
  std::string allowed;
  std::string nearest;

  std::string text() const;
};

// Thrown for wrong input of any kind: scenario, profile, trace, table, command line. what() has one fault a line.
class SpecError : public std::runtime_error {
 public:
  explicit SpecError(std::vector<Fault> faults);
  const std::vector<Fault>& faults() const { return faults_; }

 private:
  std::vector<Fault> faults_;
};

class Faults {
 public:
  void add(Fault fault) { faults_.push_back(std::move(fault)); }
  bool empty() const { return faults_.empty(); }
  std::vector<Fault>& list() { return faults_; }
  // Throws: SpecError with every fault so far.
  void throw_if_any() const;

 private:
  std::vector<Fault> faults_;
};

// The candidate within a small edit distance of `name` (a third of its length, at least one), or "" if none is near.
std::string nearest_name(std::string_view name, const std::vector<std::string>& candidates);

}  // namespace herdsim
