#include "sim/reliability/timestamp.h"

#include <charconv>
#include <chrono>

namespace herdsim {
namespace {

// Reads from the front of a text; once something was not there, nothing is.
class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}

  int digits(size_t count) {
    int value = 0;
    good_ = good_ && rest_.size() >= count && rest_.front() != '-';
    if (!good_) return 0;
    const char* end = rest_.data() + count;
    good_ = std::from_chars(rest_.data(), end, value).ptr == end;
    rest_.remove_prefix(count);
    return good_ ? value : 0;
  }
  bool takes(std::string_view one_of) {
    const bool found = good_ && !rest_.empty() && one_of.find(rest_.front()) != one_of.npos;
    if (found) last_ = rest_.front();
    if (found) rest_.remove_prefix(1);
    return found;
  }
  void expect(std::string_view one_of) { good_ = takes(one_of); }
  double fraction() {
    double value = 0;
    for (double unit = 0.1; takes("0123456789"); unit /= 10) value += unit * (last_ - '0');
    return value;
  }
  char last() const { return last_; }
  bool is_at_end() const { return good_ && rest_.empty(); }

 private:
  std::string_view rest_;
  char last_ = 0;
  bool good_ = true;
};

}  // namespace

std::optional<double> seconds_of_timestamp(std::string_view text) {
  Reader reader(text);
  const int year = reader.digits(4);
  reader.expect("-");
  const auto month = static_cast<unsigned>(reader.digits(2));
  reader.expect("-");
  const auto day = static_cast<unsigned>(reader.digits(2));
  reader.expect("T ");
  const int hour = reader.digits(2);
  reader.expect(":");
  const int minute = reader.digits(2);
  reader.expect(":");
  double second = reader.digits(2);
  if (reader.takes(".")) second += reader.fraction();
  int zone_minutes = 0;
  if (!reader.takes("Z") && reader.takes("+-")) {
    const int sign = reader.last() == '-' ? -1 : 1;
    zone_minutes = 60 * reader.digits(2);
    reader.takes(":");
    zone_minutes = sign * (zone_minutes + reader.digits(2));
  }
  const std::chrono::year_month_day date{std::chrono::year(year), std::chrono::month(month),
                                         std::chrono::day(day)};
  if (!reader.is_at_end() || !date.ok() || hour > 23 || minute > 59 || second >= 61)
    return std::nullopt;
  const auto days = std::chrono::sys_days(date).time_since_epoch().count();
  return 86'400.0 * static_cast<double>(days) + 3600.0 * hour + 60.0 * (minute - zone_minutes) +
         second;
}

}  // namespace herdsim
