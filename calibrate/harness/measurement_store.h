// What was measured, in an SQLite file: one row a (device, probe), written as soon as it is known,
// so that a calibration that is killed loses the probe it was at and no other.
//
//   sqlite3 my.calibration.db 'SELECT probe, seconds, spread, samples FROM measurements'
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "calibrate/harness/sampling.h"

namespace herdsim {

struct StoredMeasurement {
  std::string probe;  // probe_key()
  SeriesSummary summary;
  std::string stopped;  // stop_reason_text()
};

class MeasurementStore {
 public:
  // Creates the file where there is none. `device` and `software` tell measurements of one machine
  // from those of another in the same file.
  // Throws: SpecError for a file that is no database, another program's, or of another version;
  // nothing in it is changed then.
  MeasurementStore(const std::string& path, const std::string& device, const std::string& software);
  ~MeasurementStore();
  MeasurementStore(const MeasurementStore&) = delete;
  MeasurementStore& operator=(const MeasurementStore&) = delete;

  std::optional<StoredMeasurement> find(const std::string& probe) const;
  // On the disk when it returns. Throws: std::runtime_error where it cannot be written.
  void put(const StoredMeasurement& measurement);

  // Probes after which the device could do nothing any more: whoever goes on leaves them out.
  bool was_lost_at(const std::string& probe) const;
  void put_lost_at(const std::string& probe);

 private:
  struct Database;
  std::unique_ptr<Database> database_;
  std::string device_;
};

}  // namespace herdsim
