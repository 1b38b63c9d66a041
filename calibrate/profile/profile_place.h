// A message of a profile's text with its place there, and what its numbers must be: every fault
// names file, line, field and what is allowed. Inside of profile_proto.cc; nobody else sees
// protobuf.
#pragma once

#include <google/protobuf/text_format.h>

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/profile/profile.pb.h"
#include "sim/base/error.h"
#include "sim/base/provenance.h"
#include "sim/models/gemm_tiles.h"
#include "sim/models/interpolation.h"

namespace herdsim {

// All it is made of must outlive it.
class Place {
 public:
  using Tree = google::protobuf::TextFormat::ParseInfoTree;
  using Location = google::protobuf::TextFormat::ParseLocation;

  Place(const google::protobuf::Message& message, const Tree* tree, std::string path, Location at,
        const std::string& file, Faults& faults)
      : message_(message),
        tree_(tree),
        path_(std::move(path)),
        at_(at),
        file_(file),
        faults_(faults) {}

  // Of a message field; of a repeated one its element.
  Place child(const std::string& name, int index = -1) const;

  void fault(const std::string& name, std::string problem, std::string allowed = "",
             int index = -1) const;

  // Required fields that are missing, here and in every message below.
  // `all` is false where what is missing comes from elsewhere: then only the fields named are
  // required here.
  void check_required(bool all = true) const;

  bool ok() const { return faults_.empty(); }

 private:
  // Of the field, or of the list it is an element of, or of the message.
  Location location(const google::protobuf::FieldDescriptor* field, int index) const;

  const google::protobuf::Message& message_;
  const Tree* tree_;
  std::string path_;
  Location at_;
  const std::string& file_;
  Faults& faults_;
};

constexpr double kNoLimit = std::numeric_limits<double>::infinity();

bool is_positive(double value);
void check_positive(const Place& place, const std::string& field, double value);
// A step that sizes are rounded up to: no real tile is larger, and the rounding must not overflow.
void check_step(const Place& place, const std::string& field, int64_t step);
Provenance provenance(const profile::Source& source, const Place& place);

template <class List>
std::vector<double> numbers(const List& list) {
  std::vector<double> values;
  values.reserve(static_cast<size_t>(list.size()));
  for (const auto v : list) values.push_back(static_cast<double>(v));
  return values;
}

// Nodes of an axis: at least one, positive, increasing.
bool check_axis(const Place& place, const std::string& field, const std::vector<double>& nodes);
bool check_values(const Place& place, const std::string& field, const std::vector<double>& values,
                  size_t expected, double lowest, double highest);
// A curve of two parallel lists, or an empty one where anything is wrong with them.
LogCurve curve(const Place& place, const std::string& x_field, const std::vector<double>& x,
               const std::string& y_field, const std::vector<double>& y, double lowest = 0,
               double highest = kNoLimit);
// Of work(x) = x^power done at the curve's rate: more work never takes less time.
void check_time_grows(const Place& place, const std::string& y_field, const LogCurve& rate,
                      double power);
void check_never_falls(const Place& place, const std::string& field,
                       const std::vector<double>& values);
// The sustained time, burst time x factor, never falls.
void check_sustained_time(const Place& place, const LogCurve& factor);

GemmTiles read_tiles(const profile::Tiles& in, const Place& place);

}  // namespace herdsim
