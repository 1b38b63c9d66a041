#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "calibrate/nccl_tests/nccl_tests_parts.h"

namespace herdsim {
namespace {

// Takes what it knows by its path and lets everything else pass unread: the file also holds the
// environment and the arguments of the process. Events arrive up to where a file that ends early
// ends, so whole rows of a killed run are kept.
class JsonReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  bool null() override { return value_done(); }
  bool boolean(bool /*value*/) override { return value_done(); }
  bool number_integer(int64_t value) override { return number(static_cast<double>(value)); }
  bool number_unsigned(uint64_t value) override { return number(static_cast<double>(value)); }
  bool number_float(double value, const std::string& /*text*/) override { return number(value); }
  bool binary(nlohmann::json::binary_t& /*value*/) override { return value_done(); }
  bool string(std::string& value) override {
    if (path_ == "args" && !saw_program_) {
      test.collective = nccl_tests_collective(value);
      saw_program_ = true;
    }
    if (path_ == "start_time") date = value.substr(0, 10);
    if (path_ == "results.type") row_.type = value.substr(0, 16);
    if (path_ == "results.redop") row_.reduction = value.substr(0, 16);
    if (path_ == "out_of_bounds.okay") test.out_of_bounds = value == "false";
    if (path_ == "config.devices.hostname") host_ = value;  // only counted
    if (path_ == "config.devices.device_info" && test.gpu.empty()) test.gpu = hardware(value);
    return value_done();
  }
  bool start_object(size_t /*elements*/) override {
    open();
    if (path_ == "results") row_ = {};
    if (path_ == "results.out_of_place" || path_ == "results.in_place") half_ = {};
    return true;
  }
  bool end_object() override {
    if (path_ == "results.out_of_place") row_.out_of_place = half_;
    if (path_ == "results.in_place") row_.in_place = half_;
    if (path_ == "results") finish_row();
    if (path_ == "config.devices") {
      ++devices.ranks;
      devices.most_on_a_host = std::max(devices.most_on_a_host, ++hosts_[host_]);
      devices.hosts = static_cast<int64_t>(hosts_.size());
    }
    if (path_ == "out_of_bounds") test.finished = true;
    return close();
  }
  bool start_array(size_t /*elements*/) override {
    open();
    return true;
  }
  bool end_array() override { return close(); }
  bool key(std::string& name) override {
    path_ += (path_.empty() ? "" : ".") + name.substr(0, 40);
    return true;
  }
  bool parse_error(size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception& /*error*/) override {
    broken_at = position;
    return false;
  }

  NcclTest test;
  ListedDevices devices;
  std::string date;
  size_t skipped = 0;
  size_t broken_at = 0;

 private:
  static std::string hardware(const std::string& text) {
    std::string name;
    for (const char c : text.substr(0, 64)) {
      const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                         (c >= '0' && c <= '9') || c == ' ' || c == '-' || c == '/';
      if (!plain) break;
      name += c;
    }
    return name;
  }

  bool number(double value) {
    if (path_ == "nccl_version") test.nccl = nccl_version_text(static_cast<int64_t>(value));
    if (path_ == "config.nthreads") threads_ = static_cast<int64_t>(value);
    if (path_ == "config.ngpus")
      devices.threads_times_gpus = threads_ * static_cast<int64_t>(value);
    if (path_ == "results.size" && value >= 0 && value < 9e18) {
      row_.size = Bytes(static_cast<int64_t>(value));
      has_size_ = true;
    }
    if (path_ == "results.count" && value >= 0 && value < 9e18)
      row_.count = static_cast<int64_t>(value);
    const std::string_view half = std::string_view(path_).substr(0, path_.rfind('.') + 1);
    if (half == "results.out_of_place." || half == "results.in_place.") {
      const std::string_view name = std::string_view(path_).substr(half.size());
      if (name == "time" || name == "cpu_time") half_.microseconds = value;
      if (name == "alg_bw") half_.algorithm_bandwidth = value;
      if (name == "bus_bw") half_.bus_bandwidth = value;
      if (name == "nwrong") half_.wrong = value;
    }
    return value_done();
  }

  void finish_row() {
    const auto sound = [](const std::optional<NcclTestsHalf>& h) {
      return h && h->microseconds > 0;
    };
    if (!sound(row_.out_of_place)) row_.out_of_place.reset();
    if (!sound(row_.in_place)) row_.in_place.reset();
    if (has_size_ && (row_.out_of_place || row_.in_place)) {
      test.rows.push_back(row_);
    } else {
      ++skipped;
    }
    has_size_ = false;
  }

  // A list adds nothing to the path: its elements are told apart by what they hold.
  void open() { opened_.push_back(path_.size()); }
  bool close() {
    path_.resize(std::min(path_.size(), opened_.back()));
    opened_.pop_back();
    return value_done();
  }
  // After the value of a key the path is again that of the object around it.
  bool value_done() {
    path_.resize(opened_.empty() ? 0 : std::min(path_.size(), opened_.back()));
    return true;
  }

  std::string path_;
  std::vector<size_t> opened_;  // length of the path at each open object or list
  std::string host_;
  std::map<std::string, int64_t> hosts_;
  int64_t threads_ = 1;
  bool saw_program_ = false, has_size_ = false;
  NcclTestsRow row_;
  NcclTestsHalf half_;
};

}  // namespace

NcclTestsLog read_nccl_tests_json(const std::string& file, std::string_view text,
                                  const NcclTestsHints& hints) {
  JsonReader reader;
  const bool whole = nlohmann::json::sax_parse(text.begin(), text.end(), &reader,
                                               nlohmann::json::input_format_t::json, false);
  NcclTestsLog log{.file = file};
  for (size_t i = 0; i < reader.skipped; ++i) log.skipped.push_back({0, "has no size or no time"});
  if (reader.test.rows.empty()) return log;
  NcclTest test = std::move(reader.test);
  test.had_header = true;
  if (!whole) {
    test.finished = false;
    test.notes.push_back(fmt::format("the file is cut or broken at byte {}", reader.broken_at));
  }
  identify_nccl_test(file, reader.devices, hints, test);
  log.tests.push_back(std::move(test));
  return log;
}

}  // namespace herdsim
