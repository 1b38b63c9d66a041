#include "calibrate/harness/measurement_store.h"

#include <sqlite3.h>

#include <stdexcept>

#include "sim/base/error.h"

namespace herdsim {
namespace {

constexpr int kApplication = 0x48534331;  // "HSC1"
constexpr int kVersion = 2;

[[noreturn]] void refuse(const std::string& path, const std::string& problem,
                         const std::string& allowed) {
  throw SpecError({{.file = path, .problem = problem, .allowed = allowed}});
}

struct Statement {
  Statement(sqlite3* db, const char* sql) {
    if (sqlite3_prepare_v2(db, sql, -1, &handle, nullptr) != SQLITE_OK) {
      throw std::runtime_error(std::string("calibration database: ") + sqlite3_errmsg(db));
    }
  }
  ~Statement() { sqlite3_finalize(handle); }
  Statement(const Statement&) = delete;
  Statement& operator=(const Statement&) = delete;
  void bind(int index, const std::string& text) {
    sqlite3_bind_text(handle, index, text.c_str(), static_cast<int>(text.size()), SQLITE_TRANSIENT);
  }
  std::string text(int column) const {
    const auto* bytes = sqlite3_column_text(handle, column);
    return bytes == nullptr ? "" : reinterpret_cast<const char*>(bytes);
  }
  sqlite3_stmt* handle = nullptr;
};

}  // namespace

struct MeasurementStore::Database {
  ~Database() { sqlite3_close(handle); }
  sqlite3* handle = nullptr;
  std::string path;

  int pragma(const char* name) const {
    Statement s(handle, name);
    if (sqlite3_step(s.handle) != SQLITE_ROW) {
      refuse(path, "is no SQLite database, or a damaged one",
             "a file of herdsim-calibrate, or none yet");
    }
    return sqlite3_column_int(s.handle, 0);
  }
  void run(const char* sql) const {
    if (sqlite3_exec(handle, sql, nullptr, nullptr, nullptr) != SQLITE_OK) {
      throw std::runtime_error(path + ": " + sqlite3_errmsg(handle));
    }
  }
};

MeasurementStore::MeasurementStore(const std::string& path, const std::string& device,
                                   const std::string& software)
    : database_(std::make_unique<Database>()), device_(device + "; " + software) {
  Database& db = *database_;
  db.path = path;
  if (sqlite3_open(path.c_str(), &db.handle) != SQLITE_OK) {
    refuse(path, std::string("cannot be opened: ") + sqlite3_errmsg(db.handle), "");
  }
  sqlite3_busy_timeout(db.handle, 10000);
  int application = 0, version = 0, tables = 0;
  try {
    application = db.pragma("PRAGMA application_id");
    version = db.pragma("PRAGMA user_version");
    tables = db.pragma("SELECT count(*) FROM sqlite_master");
  } catch (const std::runtime_error&) {
    refuse(path, "is no SQLite database, or a damaged one",
           "a file of herdsim-calibrate, or none yet");
  }
  if (tables > 0 && application != kApplication) {
    refuse(path, "is another program's database", "a file of herdsim-calibrate, or none yet");
  }
  if (tables > 0 && version != kVersion) {
    refuse(path, "is of version " + std::to_string(version) + " of the format",
           "version 2, or a new file");
  }
  if (tables == 0) {
    db.run(
        "BEGIN IMMEDIATE; PRAGMA application_id = 1213416241; PRAGMA user_version = 2;"
        "CREATE TABLE measurements (device TEXT NOT NULL, probe TEXT NOT NULL, seconds REAL NOT "
        "NULL,"
        " spread REAL NOT NULL, relative_error REAL NOT NULL, samples INTEGER NOT NULL,"
        " throttled INTEGER NOT NULL, clock_mhz REAL NOT NULL, watts REAL NOT NULL,"
        " stopped TEXT NOT NULL, PRIMARY KEY (device, probe)); COMMIT");
  }
  // Files of before have none.
  db.run(
      "CREATE TABLE IF NOT EXISTS losses (device TEXT NOT NULL, probe TEXT NOT NULL,"
      " PRIMARY KEY (device, probe))");
}

MeasurementStore::~MeasurementStore() = default;

std::optional<StoredMeasurement> MeasurementStore::find(const std::string& probe) const {
  Statement s(database_->handle,
              "SELECT seconds, spread, relative_error, samples, throttled, clock_mhz, watts, "
              "stopped FROM measurements "
              "WHERE device = ?1 AND probe = ?2");
  s.bind(1, device_);
  s.bind(2, probe);
  const int status = sqlite3_step(s.handle);
  if (status == SQLITE_DONE) return std::nullopt;
  if (status != SQLITE_ROW)
    refuse(database_->path, "is damaged", "a file of herdsim-calibrate, or none yet");
  StoredMeasurement out{.probe = probe,
                        .summary = {.seconds = sqlite3_column_double(s.handle, 0),
                                    .spread = sqlite3_column_double(s.handle, 1),
                                    .relative_error = sqlite3_column_double(s.handle, 2),
                                    .samples = sqlite3_column_int64(s.handle, 3),
                                    .throttled = sqlite3_column_int64(s.handle, 4),
                                    .clock_mhz = sqlite3_column_double(s.handle, 5),
                                    .watts = sqlite3_column_double(s.handle, 6)},
                        .stopped = s.text(7)};
  if (!(out.summary.seconds > 0)) refuse(database_->path, "has no positive time for " + probe, "");
  return out;
}

void MeasurementStore::put(const StoredMeasurement& m) {
  Statement s(
      database_->handle,
      "INSERT OR REPLACE INTO measurements VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)");
  s.bind(1, device_);
  s.bind(2, m.probe);
  sqlite3_bind_double(s.handle, 3, m.summary.seconds);
  sqlite3_bind_double(s.handle, 4, m.summary.spread);
  sqlite3_bind_double(s.handle, 5, m.summary.relative_error);
  sqlite3_bind_int64(s.handle, 6, m.summary.samples);
  sqlite3_bind_int64(s.handle, 7, m.summary.throttled);
  sqlite3_bind_double(s.handle, 8, m.summary.clock_mhz);
  sqlite3_bind_double(s.handle, 9, m.summary.watts);
  s.bind(10, m.stopped);
  if (sqlite3_step(s.handle) != SQLITE_DONE) {
    throw std::runtime_error(database_->path + ": " + sqlite3_errmsg(database_->handle));
  }
}

bool MeasurementStore::was_lost_at(const std::string& probe) const {
  Statement s(database_->handle, "SELECT 1 FROM losses WHERE device = ?1 AND probe = ?2");
  s.bind(1, device_);
  s.bind(2, probe);
  return sqlite3_step(s.handle) == SQLITE_ROW;
}

void MeasurementStore::put_lost_at(const std::string& probe) {
  Statement s(database_->handle, "INSERT OR REPLACE INTO losses VALUES (?1, ?2)");
  s.bind(1, device_);
  s.bind(2, probe);
  if (sqlite3_step(s.handle) != SQLITE_DONE)
    throw std::runtime_error(database_->path + ": " + sqlite3_errmsg(database_->handle));
}

}  // namespace herdsim
