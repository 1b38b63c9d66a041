// The Python module `herdsim`: commands of the program as functions that return what --format json
// prints.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "sim/base/error.h"
#include "tools/herdsim/command.h"
#include "tools/herdsim/version.h"

namespace py = pybind11;

namespace herdsim {
namespace {

using Words = std::vector<std::string>;

// "true", "[7, 8]", "interleaved-1f1b": a value as --set takes it.
std::string value_text(const py::handle& value) {
  if (py::isinstance<py::bool_>(value)) return value.cast<bool>() ? "true" : "false";
  if (!py::isinstance<py::list>(value)) return py::str(value);
  std::string text;
  for (const py::handle& element : value) text += (text.empty() ? "" : ", ") + value_text(element);
  return "[" + text + "]";
}

// Of several fields that change together: "(8192,64)".
std::string axis_value(const py::handle& value) {
  if (!py::isinstance<py::tuple>(value)) return value_text(value);
  std::string text;
  for (const py::handle& element : value) text += (text.empty() ? "" : ",") + value_text(element);
  return "(" + text + ")";
}

// "parallel.tp=4,8"; a key of several fields is a tuple of their paths.
std::string axis_text(const py::handle& key, const py::handle& values) {
  std::string path, text;
  if (py::isinstance<py::tuple>(key)) {
    for (const py::handle& part : key)
      path += (path.empty() ? "" : ",") + std::string(py::str(part));
  } else {
    path = py::str(key);
  }
  for (const py::handle& value : values) text += (text.empty() ? "" : ",") + axis_value(value);
  return path + "=" + text;
}

void add_sets(const std::optional<py::dict>& sets, Words& words) {
  if (!sets) return;
  for (const auto& [path, value] : *sets) {
    words.insert(words.end(), {"--set", std::string(py::str(path)) + "=" + value_text(value)});
  }
}

template <class Value>
void add_option(const std::string& name, const std::optional<Value>& value, Words& words) {
  if (value) words.insert(words.end(), {name, py::str(py::cast(*value))});
}

py::dict dict_of(const Fault& fault) {
  py::dict dict;
  dict["file"] = fault.file;
  dict["line"] = fault.line;
  dict["column"] = fault.column;
  dict["field"] = fault.field;
  dict["problem"] = fault.problem;
  dict["allowed"] = fault.allowed;
  dict["nearest"] = fault.nearest;
  return dict;
}

[[noreturn]] void raise(const SpecError& error) {
  const py::object type = py::module_::import("herdsim").attr("SpecError");
  const py::object instance = type(error.what());
  py::list faults;
  for (const Fault& fault : error.faults()) faults.append(dict_of(fault));
  instance.attr("faults") = faults;
  PyErr_SetObject(type.ptr(), instance.ptr());
  throw py::error_already_set();
}

// What the command prints, as Python values.
py::object answer(Words words) {
  words.insert(words.end(), {"--format", "json", "--quiet"});
  std::vector<const char*> argv = {"herdsim"};
  for (const std::string& word : words) argv.push_back(word.c_str());
  std::ostringstream out, err;
  std::optional<SpecError> refused;
  {
    const py::gil_scoped_release released;
    try {
      parse_and_run(static_cast<int>(argv.size()), argv.data(), {out, err});
    } catch (const SpecError& error) {
      refused = error;
    }
  }
  if (refused) raise(*refused);
  return py::module_::import("json").attr("loads")(out.str());
}

py::object step(const std::string& scenario, const std::optional<py::dict>& set,
                const std::optional<uint64_t>& seed, bool fold, bool ignore_memory) {
  Words words = {"step", scenario};
  add_sets(set, words);
  add_option("--seed", seed, words);
  if (!fold) words.emplace_back("--no-fold");
  if (ignore_memory) words.emplace_back("--ignore-memory");
  return answer(std::move(words));
}

struct Horizon {
  std::optional<double> days, tokens;
  std::optional<int64_t> replicas, threads;

  void add_to(Words& words) const {
    add_option("--days", days, words);
    add_option("--tokens", tokens, words);
    add_option("--replicas", replicas, words);
    add_option("--threads", threads, words);
  }
};

py::object run(const std::string& scenario, const std::optional<py::dict>& set,
               const std::optional<double>& days, const std::optional<double>& tokens,
               const std::optional<int64_t>& replicas, const std::optional<uint64_t>& seed,
               const std::optional<int64_t>& threads) {
  Words words = {"run", scenario};
  add_sets(set, words);
  add_option("--seed", seed, words);
  Horizon{days, tokens, replicas, threads}.add_to(words);
  return answer(std::move(words));
}

py::object sweep(const std::string& scenario, const py::dict& axes,
                 const std::optional<py::dict>& set, const std::optional<double>& days,
                 const std::optional<double>& tokens, const std::optional<int64_t>& replicas,
                 const std::optional<uint64_t>& seed, const std::optional<int64_t>& threads,
                 const std::string& db) {
  Words words = {"sweep", scenario, "--db", db};
  for (const auto& [path, values] : axes) {
    words.insert(words.end(), {"--axis", axis_text(path, values)});
  }
  add_sets(set, words);
  add_option("--seed", seed, words);
  Horizon{days, tokens, replicas, threads}.add_to(words);
  return answer(std::move(words));
}

py::object call(const py::args& words) {
  Words line;
  for (const py::handle& word : words) line.push_back(py::str(word));
  return answer(std::move(line));
}

}  // namespace
}  // namespace herdsim

PYBIND11_MODULE(herdsim, module) {
  using namespace py::literals;
  const auto none = py::none();
  module.doc() =
      "Simulates large GPU training clusters: functions are commands of herdsim and "
      "return what --format json prints.";
  module.attr("__version__") = std::string(herdsim::kVersion);
  module.attr("SpecError") = py::reinterpret_steal<py::object>(PyErr_NewExceptionWithDoc(
      "herdsim.SpecError", "Wrong input; `faults` lists each with file, line and field.",
      PyExc_ValueError, nullptr));
  module.def("step", &herdsim::step, "scenario"_a, "set"_a = none, py::kw_only(), "seed"_a = none,
             "fold"_a = true, "ignore_memory"_a = false,
             "One optimizer step of a catalogue name or file; `set` maps field paths to values.");
  module.def("run", &herdsim::run, "scenario"_a, "set"_a = none, py::kw_only(), "days"_a = none,
             "tokens"_a = none, "replicas"_a = none, "seed"_a = none, "threads"_a = none,
             "Weeks of training under failures.");
  module.def("sweep", &herdsim::sweep, "scenario"_a, "axes"_a, "set"_a = none, py::kw_only(),
             "days"_a = none, "tokens"_a = none, "replicas"_a = none, "seed"_a = none,
             "threads"_a = none, "db"_a = ":memory:",
             "A grid: `axes` maps field paths to lists of values, or tuples of paths to lists of "
             "tuples. With `db` points are kept in a file and found again.");
  module.def("call", &herdsim::call,
             "Any command line that has JSON: call('compare', 'llama3-405b-8192', "
             "'llama3-405b-16384').");
}
