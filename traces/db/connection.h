// SQLite behind our types: statements that are prepared once, transactions that roll back, errors
// with the path. Included by .cc files of this folder only.
#pragma once

#include <sqlite3.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "sim/base/units.h"

namespace herdsim {

// A prepared statement. bind() takes the parameters in order; NaN, infinities and empty optionals
// become NULL.
class Statement {
 public:
  Statement(sqlite3* database, const std::string& path, const char* sql);

  template <class... Values>
  Statement& bind(const Values&... values) {
    sqlite3_reset(statement_.get());
    int place = 0;
    (bind_one(++place, values), ...);
    return *this;
  }
  // True while there is a row.
  // Throws: SpecError.
  bool step();
  // Runs to the end.
  void run();
  int64_t integer(int column) const { return sqlite3_column_int64(statement_.get(), column); }
  double real(int column) const { return sqlite3_column_double(statement_.get(), column); }
  int columns() const { return sqlite3_column_count(statement_.get()); }
  std::string column_name(int column) const {
    return sqlite3_column_name(statement_.get(), column);
  }
  int type(int column) const { return sqlite3_column_type(statement_.get(), column); }
  bool is_null(int column) const {
    return type(column) == SQLITE_NULL;
  }
  std::string text(int column) const;

 private:
  void bind_one(int place, int64_t value);
  void bind_one(int place, double value);
  void bind_one(int place, std::string_view value);
  void bind_one(int place, const std::string& value) { bind_one(place, std::string_view(value)); }
  void bind_one(int place, Bytes value) { bind_one(place, value.count()); }
  void bind_one(int place, std::nullopt_t);
  template <class Value>
  void bind_one(int place, const std::optional<Value>& value) {
    value ? bind_one(place, *value) : bind_one(place, std::nullopt);
  }

  struct Finalizer {
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };
  const std::string& path_;
  std::unique_ptr<sqlite3_stmt, Finalizer> statement_;
};

enum class Access : uint8_t { kWrite, kRead };

class DatabaseConnection {
 public:
  // To write, a file that is absent is made and an older one gets the tables it lacks. To read, not
  // a byte of the file changes.
  explicit DatabaseConnection(std::string path, Access access = Access::kWrite);

  // The statement of this text, prepared at its first use.
  Statement& prepared(const char* sql);
  void execute(const char* sql);
  int64_t last_row() const { return sqlite3_last_insert_rowid(database_.get()); }
  const std::string& path() const { return path_; }

 private:
  void open(int flags);
  void create_schema();
  // A file of an older program gets what it lacks.
  void bring_up_to_date();
  void check_for_damage();

  struct Closer {
    void operator()(sqlite3* database) const { sqlite3_close(database); }
  };
  std::string path_;
  std::unique_ptr<sqlite3, Closer> database_;
  std::map<std::string_view, Statement> statements_;
};

// Rolls back unless committed.
class Transaction {
 public:
  explicit Transaction(DatabaseConnection& connection);
  ~Transaction();
  void commit();

 private:
  DatabaseConnection& connection_;
  bool open_ = true;
};

}  // namespace herdsim
