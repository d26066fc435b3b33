#pragma once

// For tests of control stores and of what is kept in them.

#include <chrono>
#include <map>
#include <string>
#include <utility>

#include "menger/runtime/control/control_store.h"

namespace menger::testing_stores {

inline Deadline Soon() { return Deadline::After(std::chrono::seconds(60)); }

inline StoreResult Do(ControlStore& store, StoreOperation operation) {
  return RunBatch(store, {std::move(operation)}, Soon()).front();
}

inline std::string ValueOf(ControlStore& store, StoreTable table, const std::string& key) {
  return Do(store, StoreOperation::Get(table, key)).record.value;
}

inline std::map<std::string, std::string> Contents(ControlStore& store, StoreTable table) {
  std::map<std::string, std::string> contents;
  for (StoreRecord& record : ScanAll(store, table, "", Soon())) {
    contents.emplace(std::move(record.key), std::move(record.value));
  }
  return contents;
}

}  // namespace menger::testing_stores
