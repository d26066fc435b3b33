#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "menger/tensor/spec.h"

namespace menger {

// One named float32 array within a flat parameter blob.
struct ParameterEntry {
  std::string name;         // "policy/0/weight"
  Shape shape;              // [inputs, outputs] for a dense layer.
  std::int64_t offset = 0;  // In floats from the start of the blob.

  std::int64_t elements() const { return ElementCount(shape); }
};

// What a flat blob of parameters holds, in order and without gaps. Value type.
class ParameterManifest {
 public:
  // Appends an array; returns its offset in floats.
  std::int64_t Add(std::string name, Shape shape);

  const std::vector<ParameterEntry>& entries() const { return entries_; }
  std::int64_t size() const { return size_; }  // Floats in all.
  const ParameterEntry* Find(const std::string& name) const;

  // Throws FailedPrecondition that names the first entry in which `other` differs: a checkpoint of
  // another architecture.
  void CheckEqual(const ParameterManifest& other, const std::string& what) const;

  std::string ToText()
      const;  // One line an entry: "name (shape)"; equal texts mean equal manifests.
  static ParameterManifest FromText(const std::string& text);

 private:
  std::vector<ParameterEntry> entries_;
  std::int64_t size_ = 0;
};

}  // namespace menger
