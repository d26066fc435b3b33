#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace menger {

// Amounts of what calls need while they run and a node has to give: CPUs, GPUs, and whatever else
// the user names. Counted in ten-thousandths, so that sums are exact.
class Resources {
 public:
  Resources() = default;
  // Throws InvalidArgument for an amount that cannot be (CheckAmount).
  Resources(double cpus, double gpus);
  // Of a text as "cpu=1 gpu=0.5". Throws InvalidArgument for one that cannot be read.
  static Resources Parse(std::string_view text);

  void Set(std::string_view name, double amount);  // "cpu", "gpu" or any other name.
  // Throws InvalidArgument for a name that users must not give.
  static void CheckName(std::string_view name);
  // As errors show a name: its beginning, where it is long.
  static std::string Shown(std::string_view name);
  // Throws InvalidArgument for a negative amount, one of more than 10^6, and what is nearly none.
  static void CheckAmount(std::string_view name, double amount);
  double Get(std::string_view name) const;

  // Whether `need` is here; then Subtract and Add keep the books.
  bool Contains(const Resources& need) const;
  void Subtract(const Resources& need);  // May go below zero: a call that wakes up takes its CPU
                                         // back even if somebody else has it for the moment.
  void Add(const Resources& amount);
  // Forgets the amounts of these names, whatever they are.
  void Erase(const Resources& names);

  // Whether some resource is in both.
  bool Overlaps(const Resources& other) const;

  // Whether this is of what `available` has too little of for `wanted`.
  bool OverlapsLack(const Resources& wanted, const Resources& available) const;

  // The first that `total` never has enough of, as "gpu: needs 2, there is 0"; "" if none.
  std::string MissingFrom(const Resources& total) const;

  bool operator==(const Resources&) const = default;

  struct Named {
    std::string name;
    std::int64_t parts = 0;  // Ten-thousandths.
    bool operator==(const Named&) const = default;
  };
  const std::vector<Named>& amounts() const { return amounts_; }

 private:
  std::int64_t Parts(std::string_view name) const;

  std::vector<Named> amounts_;  // Sorted by name; none is zero.
};

std::string ToString(const Resources& resources);  // As "cpu=1 gpu=0.5"; long names shortened.

}  // namespace menger
