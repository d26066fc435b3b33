#pragma once

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/error.h"
#include "menger/base/files.h"
#include "menger/runtime/control/control_store.h"

namespace menger::bench {

// What of EmbeddedStore is a store on the disk, by SQLite: no leases, no conditions, no watches,
// and whoever calls waits. One thread. Every call throws Internal with SQLite's own words.
class SqliteStore {
 public:
  // `sync_each`: a batch is on the disk when Apply returns (synchronous=FULL). Otherwise it
  // survives the process (NORMAL), and the log is synced every 100 ms by hand, since SQLite does
  // that only when it copies the log to the database.
  SqliteStore(const std::string& path, bool sync_each) : path_(path), sync_each_(sync_each) {
    sqlite3* database = nullptr;
    const int code = sqlite3_open(path.c_str(), &database);
    database_.reset(database);
    Check(code);
    Run("PRAGMA journal_mode=WAL");
    Run(sync_each ? "PRAGMA synchronous=FULL" : "PRAGMA synchronous=NORMAL");
    Run("CREATE TABLE IF NOT EXISTS records(store INTEGER, key BLOB, value BLOB, version INTEGER,"
        " lease INTEGER, PRIMARY KEY(store, key)) WITHOUT ROWID");
    begin_ = Prepare("BEGIN IMMEDIATE");
    commit_ = Prepare("COMMIT");
    put_ = Prepare("REPLACE INTO records VALUES(?1, ?2, ?3, ?4, 0)");
    delete_ = Prepare("DELETE FROM records WHERE store=?1 AND key=?2");
    get_ = Prepare("SELECT value FROM records WHERE store=?1 AND key=?2");
    all_ = Prepare("SELECT key, value FROM records WHERE store=?1");
  }

  void Apply(const std::vector<StoreOperation>& batch) {
    Step(begin_);
    for (const StoreOperation& operation : batch) {
      const bool put = operation.kind == StoreOperation::Kind::kPut;
      sqlite3_stmt* const statement = put ? put_ : delete_;
      BindKey(statement, operation.table, operation.key);
      if (put) {
        Check(BindBlob(statement, 3, operation.value));
        Check(sqlite3_bind_int64(statement, 4, ++version_));
      }
      Step(statement);
    }
    Step(commit_);
    if (!sync_each_ && since_sync_.seconds() > 0.1) SyncLog();
  }

  std::optional<std::string> Get(StoreTable table, std::string_view key) {
    BindKey(get_, table, key);
    std::optional<std::string> value;
    while (Row(get_)) value = Column(get_, 0);
    return value;
  }

  std::map<std::string, std::string> All(StoreTable table) {
    Check(sqlite3_bind_int(all_, 1, static_cast<int>(table)));
    std::map<std::string, std::string> records;
    while (Row(all_)) records[Column(all_, 0)] = Column(all_, 1);
    return records;
  }

  // "ok", or what PRAGMA integrity_check finds first.
  std::string IntegrityCheck() {
    sqlite3_stmt* const check = Prepare("PRAGMA integrity_check(1)");
    std::string text;
    while (Row(check)) text = Column(check, 0);
    return text;
  }

 private:
  struct Closed {
    void operator()(sqlite3* database) const { sqlite3_close(database); }
    void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
  };

  void Check(int code) {
    if (code == SQLITE_OK) return;
    throw Internal("SQLite: {}", sqlite3_errmsg(database_.get()));
  }
  void Run(const char* sql) {
    Check(sqlite3_exec(database_.get(), sql, nullptr, nullptr, nullptr));
  }
  sqlite3_stmt* Prepare(const char* sql) {
    sqlite3_stmt* statement = nullptr;
    Check(sqlite3_prepare_v3(database_.get(), sql, -1, SQLITE_PREPARE_PERSISTENT, &statement,
                             nullptr));
    statements_.emplace_back(statement);
    return statement;
  }
  static int BindBlob(sqlite3_stmt* statement, int at, std::string_view bytes) {
    return sqlite3_bind_blob(statement, at, bytes.data(), static_cast<int>(bytes.size()), nullptr);
  }
  void BindKey(sqlite3_stmt* statement, StoreTable table, std::string_view key) {
    Check(sqlite3_bind_int(statement, 1, static_cast<int>(table)));
    Check(BindBlob(statement, 2, key));
  }
  static std::string Column(sqlite3_stmt* statement, int at) {
    const void* const bytes = sqlite3_column_blob(statement, at);
    return {static_cast<const char*>(bytes),
            static_cast<std::size_t>(sqlite3_column_bytes(statement, at))};
  }
  bool Row(sqlite3_stmt* statement) {
    if (sqlite3_step(statement) == SQLITE_ROW) return true;
    Check(sqlite3_reset(statement));
    return false;
  }
  void Step(sqlite3_stmt* statement) {
    while (Row(statement)) {
    }
  }
  void SyncLog() {
    if (!log_.valid()) log_ = FileDescriptor(open((path_ + "-wal").c_str(), O_RDWR | O_CLOEXEC));
    if (fdatasync(log_.get()) != 0) throw Internal("the log of {} cannot be synced", path_);
    since_sync_.Restart();
  }

  const std::string path_;
  const bool sync_each_;
  std::unique_ptr<sqlite3, Closed> database_;
  std::vector<std::unique_ptr<sqlite3_stmt, Closed>> statements_;
  sqlite3_stmt* begin_;
  sqlite3_stmt* commit_;
  sqlite3_stmt* put_;
  sqlite3_stmt* delete_;
  sqlite3_stmt* get_;
  sqlite3_stmt* all_;
  std::int64_t version_ = 0;
  Stopwatch since_sync_;
  FileDescriptor log_;
};

}  // namespace menger::bench
