#include "menger/replay/chunks/item.h"

#include <algorithm>
#include <utility>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr int kNumberBits = 34;
constexpr int kSlotBits = 24;
constexpr int kLifeBits = 6;
static_assert(kNumberBits + kSlotBits + kLifeBits == 64);

std::uint64_t Fitting(const char* what, std::uint64_t value, int bits) {
  if (value >> bits == 0) return value;
  throw FailedPrecondition(
      "the {} {} of an item has more than the {} bits that a key of 64 bits has for it; keys of "
      "Menger's own interface have no such bound",
      what, value, bits);
}

}  // namespace

std::uint64_t PackKey(const ItemKey& key) {
  Fitting("shard", key.shard, 0);
  return Fitting("number", key.number, kNumberBits) |
         Fitting("slot", key.slot, kSlotBits) << kNumberBits |
         Fitting("life", key.life, kLifeBits) << (kNumberBits + kSlotBits);
}

ItemKey UnpackKey(std::uint64_t packed) {
  const auto bits = [packed](int from, int count) {
    return packed >> from & ((std::uint64_t{1} << count) - 1);
  };
  return {.number = bits(0, kNumberBits),
          .slot = static_cast<std::uint32_t>(bits(kNumberBits, kSlotBits)),
          .life = static_cast<std::uint32_t>(bits(kNumberBits + kSlotBits, kLifeBits))};
}

int ItemSpec::Find(std::string_view name) const {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    if (columns[i].name == name) return static_cast<int>(i);
  }
  return -1;
}

const LeafSpec& ItemSpec::LeafOf(const ItemColumn& column) const {
  const int leaf = steps.Find(column.leaf);
  if (leaf >= 0) return steps[leaf];
  std::vector<std::string> names;
  for (const LeafSpec& known : steps.leaves()) names.push_back(known.name);
  throw InvalidArgument("item column '{}' shows leaf '{}', which steps do not have{}", column.name,
                        column.leaf, DidYouMean(column.leaf, names));
}

ItemSpec ItemSpec::Open(std::string notes) {
  return {.columns = {{.name = "slices", .rows = 65535}}, .open = true, .notes = std::move(notes)};
}

std::size_t ItemSpec::BytesMin() const {
  std::size_t step = 0;
  for (const LeafSpec& leaf : steps.leaves()) step += leaf.bytes();
  std::size_t rows = 0;
  for (const ItemColumn& column : columns) {
    rows = std::max(rows, static_cast<std::size_t>(column.rows));
  }
  return std::max<std::size_t>(1, step * rows);
}

void ItemSpec::CheckHasLeaves() const {
  if (!open) return;
  throw InvalidArgument("the items of an open table have no leaves; only their slices can be read");
}

void ItemSpec::Check() const {
  if (open) {
    if (steps.size() == 0 && columns == Open().columns) return;
    throw InvalidArgument("an open table has steps or columns of its own; it must have neither");
  }
  if (columns.empty()) throw InvalidArgument("an item without columns; it needs at least one");
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const ItemColumn& column = columns[i];
    if (column.name.empty()) throw InvalidArgument("item column {} has no name", i);
    if (Find(column.name) != static_cast<int>(i)) {
      throw InvalidArgument("an item has two columns named '{}'", column.name);
    }
    if (column.rows < 1 || column.rows > 65535) {
      throw InvalidArgument("item column '{}' has {} rows; it must be 1 to 65535", column.name,
                            column.rows);
    }
    LeafOf(column);
  }
}

}  // namespace menger
