#include "menger/replay/chunks/item.h"

#include "menger/base/error.h"

namespace menger {

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

void ItemSpec::Check() const {
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
