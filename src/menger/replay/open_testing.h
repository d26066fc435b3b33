#pragma once

// For tests of open tables.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "menger/replay/chunks/chunk_store.h"
#include "menger/replay/sample.h"
#include "menger/replay/table_testing.h"

namespace menger::testing_tables {

inline TableOptions OpenTable(std::string name = "open") {
  return {.name = std::move(name),
          .items = ItemSpec::Open("notes"),
          .sampler = {.kind = SelectorKind::kFifo},
          .items_max = 1000,
          .bytes_max = std::size_t{1} << 20};
}

inline std::span<const std::byte> BytesOf(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

// All rows of an item, one after the other, as text.
inline std::string TextOf(const Sample& sample, int item) {
  std::string text;
  for (const Slice& slice : sample.slices(item, 0)) {
    const auto bytes =
        static_cast<std::size_t>(ByteRowsIn(sample.chunks()->steps_id(slice.chunk)).value_or(0));
    const auto* const rows =
        reinterpret_cast<const char*>(sample.chunks()->Data(slice.chunk, slice.offset * bytes));
    text.append(rows, slice.length * bytes);
  }
  return text;
}

// What each of the next `count` draws shows.
inline std::vector<std::string> DrawTexts(Table& table, int count) {
  Sample sample;
  table.SampleInto({.count = count, .deadline = Soon()}, sample);
  std::vector<std::string> texts;
  for (int i = 0; i < sample.size(); ++i) texts.push_back(TextOf(sample, i));
  return texts;
}

}  // namespace menger::testing_tables
