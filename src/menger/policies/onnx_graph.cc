#include "menger/policies/onnx_graph.h"

#include <bit>
#include <limits>

#include "menger/base/build_identity.h"
#include "menger/base/error.h"
#include "onnx.pb.h"

namespace menger {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors are little-endian");

onnx::Tensor::DataType CodeOf(DataType type) {
  switch (type) {
    case DataType::kUint8:
      return onnx::Tensor::UINT8;
    case DataType::kInt32:
      return onnx::Tensor::INT32;
    case DataType::kInt64:
      return onnx::Tensor::INT64;
    case DataType::kFloat32:
      return onnx::Tensor::FLOAT;
    case DataType::kFloat64:
      return onnx::Tensor::DOUBLE;
  }
  return onnx::Tensor::NONE;
}

void Describe(onnx::ValueInfo& value, const std::string& name, DataType type, const Shape& shape,
              const std::string& meaning) {
  value.set_name(name);
  value.set_doc_string(meaning);
  auto* const tensor = value.mutable_type()->mutable_tensor_type();
  tensor->set_elem_type(CodeOf(type));
  tensor->mutable_shape()->add_dim()->set_dim_param("batch");
  for (const std::int64_t size : shape) tensor->mutable_shape()->add_dim()->set_dim_value(size);
}

}  // namespace

OnnxGraph::OnnxGraph() : model_(std::make_unique<onnx::Model>()) {}
OnnxGraph::~OnnxGraph() = default;

std::string OnnxGraph::NewName(const std::string& kind) {
  return fmt::format("{}_{}", kind, names_++);
}

void OnnxGraph::AddInput(const std::string& name, DataType type, const Shape& shape,
                         const std::string& meaning) {
  Describe(*model_->mutable_graph()->add_input(), name, type, shape, meaning);
}

void OnnxGraph::AddOutput(const std::string& name, DataType type, const Shape& shape,
                          const std::string& meaning) {
  Describe(*model_->mutable_graph()->add_output(), name, type, shape, meaning);
}

std::string OnnxGraph::Floats(std::span<const float> values, const Shape& shape) {
  onnx::Tensor* const tensor = model_->mutable_graph()->add_initializer();
  tensor->set_name(NewName("floats"));
  tensor->set_data_type(onnx::Tensor::FLOAT);
  for (const std::int64_t size : shape) tensor->add_dims(size);
  tensor->set_raw_data(values.data(), values.size_bytes());
  return tensor->name();
}

std::string OnnxGraph::Whole(const Integers& values) {
  onnx::Tensor* const tensor = model_->mutable_graph()->add_initializer();
  tensor->set_name(NewName("whole"));
  tensor->set_data_type(onnx::Tensor::INT64);
  tensor->add_dims(static_cast<std::int64_t>(values.size()));
  tensor->set_raw_data(values.data(), values.size() * sizeof(std::int64_t));
  return tensor->name();
}

std::string OnnxGraph::Add(const std::string& operation, const std::vector<std::string>& inputs,
                           const Attributes& attributes, const std::string& name) {
  onnx::Node* const node = model_->mutable_graph()->add_node();
  node->set_op_type(operation);
  for (const std::string& input : inputs) node->add_input(input);
  node->add_output(name.empty() ? NewName(operation) : name);
  node->set_name(node->output(0));
  for (const auto& [key, values] : attributes) {
    onnx::Attribute* const attribute = node->add_attribute();
    const bool list = key.ends_with("[]");
    attribute->set_name(list ? key.substr(0, key.size() - 2) : key);
    attribute->set_type(list ? onnx::Attribute::INTS : onnx::Attribute::INT);
    if (!list) {
      attribute->set_i(values.at(0));
      continue;
    }
    for (const std::int64_t value : values) attribute->add_ints(value);
  }
  return node->output(0);
}

std::string OnnxGraph::Cast(const std::string& value, DataType type) {
  return Add("Cast", {value}, {{"to", {CodeOf(type)}}});
}

std::string OnnxGraph::ToFlags(const std::string& value) {
  return Add("Cast", {value}, {{"to", {onnx::Tensor::BOOL}}});
}

std::string OnnxGraph::Reshape(const std::string& value, const Integers& shape,
                               const std::string& name) {
  return Add("Reshape", {value, Whole(shape)}, {}, name);
}

std::string OnnxGraph::Columns(const std::string& value, std::int64_t begin, std::int64_t end,
                               const std::string& name) {
  return Add("Slice", {value, Whole({begin}), Whole({end}), Whole({1})}, {}, name);
}

std::string OnnxGraph::Join(const std::vector<std::string>& values, const std::string& name) {
  if (values.size() == 1) return name.empty() ? values[0] : Add("Identity", values, {}, name);
  return Add("Concat", values, {{"axis", {1}}}, name);
}

std::string OnnxGraph::Serialise(
    const std::vector<std::pair<std::string, std::string>>& properties) const {
  onnx::Model model = *model_;
  model.set_ir_version(kIrVersion);
  model.set_producer_name("menger");
  model.set_producer_version(ThisBuild().version);
  model.mutable_graph()->set_name("policy");
  model.add_opset_import()->set_version(kOpset);
  for (const auto& [key, value] : properties) {
    onnx::Property* const property = model.add_metadata_props();
    property->set_key(key);
    property->set_value(value);
  }
  constexpr std::size_t kBytesMax = std::numeric_limits<std::int32_t>::max();
  if (model.ByteSizeLong() > kBytesMax) {
    throw InvalidArgument(
        "an ONNX file of {} bytes: one file holds at most {}; export a bundle instead",
        model.ByteSizeLong(), kBytesMax);
  }
  return model.SerializeAsString();
}

}  // namespace menger
