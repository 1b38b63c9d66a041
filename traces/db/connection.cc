#include "traces/db/connection.h"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <span>
#include <utility>

#include "sim/base/error.h"
#include "traces/db/database_file.h"

namespace herdsim {

// Generated from schema.sql.
std::span<const std::pair<std::string_view, std::string_view>> embedded_run_database_schema();

namespace {

constexpr int kPatienceMilliseconds = 60'000;

[[noreturn]] void fail(sqlite3* database, const std::string& path) {
  const int cause = sqlite3_system_errno(database);
  throw SpecError(
      {{.file = path,
        .problem = fmt::format("the run database: {}{}", sqlite3_errmsg(database),
                               cause == 0 ? "" : fmt::format(": {}", std::strerror(cause)))}});
}

}  // namespace

Statement::Statement(sqlite3* database, const std::string& path, const char* sql) : path_(path) {
  sqlite3_stmt* statement = nullptr;
  if (sqlite3_prepare_v3(database, sql, -1, SQLITE_PREPARE_PERSISTENT, &statement, nullptr) !=
      SQLITE_OK) {
    fail(database, path);
  }
  statement_.reset(statement);
}

bool Statement::step() {
  const int status = sqlite3_step(statement_.get());
  if (status == SQLITE_ROW) return true;
  if (status == SQLITE_DONE) return false;
  sqlite3* database = sqlite3_db_handle(statement_.get());
  sqlite3_reset(statement_.get());
  fail(database, path_);
}

void Statement::run() {
  while (step()) {
  }
  sqlite3_reset(statement_.get());
}

std::string Statement::text(int column) const {
  const auto* characters =
      reinterpret_cast<const char*>(sqlite3_column_text(statement_.get(), column));
  return characters == nullptr ? "" : characters;
}

void Statement::bind_one(int place, int64_t value) {
  sqlite3_bind_int64(statement_.get(), place, value);
}

void Statement::bind_one(int place, double value) {
  if (std::isfinite(value)) {
    sqlite3_bind_double(statement_.get(), place, value);
  } else {
    sqlite3_bind_null(statement_.get(), place);
  }
}

void Statement::bind_one(int place, std::string_view value) {
  sqlite3_bind_text64(statement_.get(), place, value.data(), value.size(), SQLITE_TRANSIENT,
                      SQLITE_UTF8);
}

void Statement::bind_one(int place, std::nullopt_t) { sqlite3_bind_null(statement_.get(), place); }

DatabaseConnection::DatabaseConnection(std::string path, Access access) : path_(std::move(path)) {
  const DatabaseFile found = inspect_database_file(path_);
  if (access == Access::kRead) {
    if (found == DatabaseFile::kAbsent) {
      throw SpecError({{.file = path_,
                        .problem = "there is no run database",
                        .allowed = "a file that --db of another command wrote"}});
    }
    open(SQLITE_OPEN_READONLY);
    check_for_damage();
    return;
  }
  if (found == DatabaseFile::kAbsent) {
    open(SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE);
    create_schema();
  } else {
    open(SQLITE_OPEN_READWRITE);
    check_for_damage();
    bring_up_to_date();
  }
  // Only now: changing the journal writes to the file.
  execute("PRAGMA journal_mode = WAL");
  execute("PRAGMA synchronous = NORMAL");
  execute("PRAGMA foreign_keys = ON");
}

void DatabaseConnection::open(int flags) {
  sqlite3* database = nullptr;
  const int status = sqlite3_open_v2(path_.c_str(), &database, flags, nullptr);
  database_.reset(database);
  if (status != SQLITE_OK) fail(database, path_);
  sqlite3_busy_timeout(database, kPatienceMilliseconds);
}

// One transaction under the rollback journal, so that the header already tells whose file it is
// when the first result is still in the write-ahead log.
void DatabaseConnection::create_schema() {
  Transaction transaction(*this);
  Statement tables(database_.get(), path_, "SELECT count(*) FROM sqlite_schema");
  tables.step();
  // Another program may have made the schema since we looked.
  if (tables.integer(0) == 0) {
    execute(std::string(embedded_run_database_schema()[0].second).c_str());
    execute(fmt::format("PRAGMA application_id = {}", kRunDatabaseId).c_str());
    execute(fmt::format("PRAGMA user_version = {}", kSchemaVersion).c_str());
  }
  transaction.commit();
}

void DatabaseConnection::bring_up_to_date() {
  {
    Statement version(database_.get(), path_, "PRAGMA user_version");
    version.step();
    if (version.integer(0) >= kSchemaVersion) return;
  }
  Transaction transaction(*this);
  // Version 1 never wrote failures or links, whose columns have changed, and had no account of
  // weeks.
  execute("DROP TABLE IF EXISTS failures");
  execute("DROP TABLE IF EXISTS links");
  execute("DROP VIEW IF EXISTS v_time_account");
  execute(std::string(embedded_run_database_schema()[0].second).c_str());
  execute(fmt::format("PRAGMA user_version = {}", kSchemaVersion).c_str());
  transaction.commit();
}

void DatabaseConnection::check_for_damage() {
  Statement check(database_.get(), path_, "PRAGMA quick_check(1)");
  const std::string verdict = check.step() ? check.text(0) : "no answer";
  if (verdict != "ok")
    throw SpecError({{.file = path_, .problem = "the run database is damaged: " + verdict}});
}

Statement& DatabaseConnection::prepared(const char* sql) {
  const auto known = statements_.find(sql);
  if (known != statements_.end()) return known->second;
  return statements_
      .emplace(std::piecewise_construct, std::forward_as_tuple(sql),
               std::forward_as_tuple(database_.get(), path_, sql))
      .first->second;
}

void DatabaseConnection::execute(const char* sql) {
  if (sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr) != SQLITE_OK)
    fail(database_.get(), path_);
}

Transaction::Transaction(DatabaseConnection& connection) : connection_(connection) {
  connection_.execute("BEGIN IMMEDIATE");
}

Transaction::~Transaction() {
  if (!open_) return;
  try {
    connection_.execute("ROLLBACK");
  } catch (const SpecError&) {
    // SQLite has rolled back already when it ran out of space or memory.
  }
}

void Transaction::commit() {
  connection_.execute("COMMIT");
  open_ = false;
}

}  // namespace herdsim
