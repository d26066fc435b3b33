#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "menger/tensor/data_type.h"
#include "menger/tensor/spec.h"

namespace menger::onnx {
class Model;
}

namespace menger {

// Builds the graph of an ONNX model: values are known by their names, nodes stand in the order in
// which they are added. Operators are those of opset 17.
class OnnxGraph {
 public:
  static constexpr std::int64_t kOpset = 17;
  static constexpr std::int64_t kIrVersion = 8;  // That opset 17 came with.

  using Integers = std::vector<std::int64_t>;
  using Attributes = std::vector<std::pair<std::string, Integers>>;  // One: a number, not a list.

  OnnxGraph();
  ~OnnxGraph();

  // Arrays with a batch in front, which has any size.
  void AddInput(const std::string& name, DataType type, const Shape& shape,
                const std::string& meaning);
  void AddOutput(const std::string& name, DataType type, const Shape& shape,
                 const std::string& meaning);

  // A constant; returns its name.
  std::string Floats(std::span<const float> values, const Shape& shape);
  std::string Whole(const Integers& values);  // One dimension.
  std::string Scalar(float value) { return Floats({&value, 1}, {}); }

  // Adds a node; returns the name of its result: `name`, or a new one. An attribute's name that
  // ends with "[]" is a list whatever its size.
  std::string Add(const std::string& operation, const std::vector<std::string>& inputs,
                  const Attributes& attributes = {}, const std::string& name = "");

  // Shorthands. Columns are those of dimension 1.
  std::string Cast(const std::string& value, DataType type);
  std::string ToFlags(const std::string& value);
  std::string Reshape(const std::string& value, const Integers& shape,
                      const std::string& name = "");
  std::string Columns(const std::string& value, std::int64_t begin, std::int64_t end,
                      const std::string& name = "");
  // The value itself if it is one, unless it needs another name.
  std::string Join(const std::vector<std::string>& values, const std::string& name = "");

  // The file. Properties are texts by name.
  std::string Serialise(const std::vector<std::pair<std::string, std::string>>& properties) const;

 private:
  std::string NewName(const std::string& kind);

  std::unique_ptr<onnx::Model> model_;
  int names_ = 0;
};

}  // namespace menger
