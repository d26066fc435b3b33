#include "menger/policies/onnx_file.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>

#include "menger/policies/onnx_graph.h"

namespace menger {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr const char* kZeros = "; zeros begin an episode";

std::int64_t SizeOf(const std::vector<float>& values) {
  return static_cast<std::int64_t>(values.size());
}

// Translates a description piece by piece, from the observation to the action.
class Translator {
 public:
  explicit Translator(const PolicyDescription& policy) : policy_(policy) {}

  std::string Translate(const std::vector<std::pair<std::string, std::string>>& about) {
    const std::string given = Parted(Stacked(Encoded()));
    if (policy_.network.state_width() > 0) {
      graph_.AddInput("state", DataType::kFloat32, {policy_.network.state_width()},
                      std::string("next_state of the step before") + kZeros);
    }
    for (const NetworkLayer& layer : policy_.network.layers) {
      results_.push_back(Layer(layer, layer.source < 0 ? given : results_[layer.source]));
    }
    Decide();
    if (!states_.empty()) {
      graph_.Join(states_, "next_state");
      graph_.AddOutput("next_state", DataType::kFloat32, {policy_.network.state_width()},
                       "what the network remembers");
    }
    return graph_.Serialise(about);
  }

 private:
  static std::string MeaningOf(const LeafSpec& leaf) {
    if (leaf.space == Space::kMask) return "1: the choice is allowed, 0: it is not";
    if (leaf.counts.empty()) return "";
    return fmt::format("choices below {}", fmt::join(leaf.counts, ", "));
  }

  std::string Encoded() {
    std::vector<std::string> parts;
    for (std::size_t i = 0; i < policy_.observation.size(); ++i) {
      const LeafSpec& leaf = policy_.observation[i];
      graph_.AddInput(leaf.name, leaf.dtype, leaf.shape, MeaningOf(leaf));
      const std::string flat = graph_.Reshape(leaf.name, {-1, leaf.elements()});
      if (static_cast<int>(i) == policy_.mask_leaf) {
        mask_ = graph_.ToFlags(flat);
      } else if (leaf.space == Space::kDiscrete || leaf.space == Space::kMultiDiscrete) {
        for (std::size_t k = 0; k < leaf.counts.size(); ++k) {
          parts.push_back(OneHot(flat, static_cast<std::int64_t>(k), leaf.counts[k]));
        }
      } else {
        parts.push_back(leaf.dtype == DataType::kFloat32 ? flat
                                                         : graph_.Cast(flat, DataType::kFloat32));
      }
    }
    return graph_.Join(parts);
  }

  std::string OneHot(const std::string& codes, std::int64_t column, std::int64_t count) {
    OnnxGraph::Integers choices(static_cast<std::size_t>(count));
    std::iota(choices.begin(), choices.end(), std::int64_t{0});
    const std::string code = graph_.Columns(codes, column, column + 1);
    return graph_.Cast(graph_.Add("Equal", {code, graph_.Whole(choices)}), DataType::kFloat32);
  }

  std::string Stacked(const std::string& frame) {
    if (policy_.frame_stack == 1) return frame;
    const std::int64_t size = policy_.network.inputs / policy_.frame_stack;
    const Shape before = {policy_.network.inputs - size};
    graph_.AddInput("frames", DataType::kFloat32, before,
                    std::string("next_frames of the step before") + kZeros);
    std::string stack = graph_.Join({"frames", frame});
    graph_.Columns(stack, size, policy_.network.inputs, "next_frames");
    graph_.AddOutput("next_frames", DataType::kFloat32, before, "the frames to remember");
    return stack;
  }

  // What layers read that read no other: all of it, or the images alone.
  std::string Parted(const std::string& stack) {
    const std::int64_t beside = policy_.network.beside / policy_.frame_stack;
    if (beside == 0) return Normalised(stack);
    const std::int64_t size = policy_.network.inputs / policy_.frame_stack;
    std::vector<std::string> images;
    std::vector<std::string> numbers;
    for (std::int64_t begin = 0; begin < policy_.network.inputs; begin += size) {
      images.push_back(graph_.Columns(stack, begin, begin + size - beside));
      numbers.push_back(graph_.Columns(stack, begin + size - beside, begin + size));
    }
    beside_ = Normalised(graph_.Join(numbers));
    return graph_.Join(images);
  }

  std::string Normalised(const std::string& values) {
    if (policy_.scale.empty()) return values;
    const std::string scaled =
        graph_.Add("Mul", {values, graph_.Floats(policy_.scale, {SizeOf(policy_.scale)})});
    const std::string shifted =
        graph_.Add("Add", {scaled, graph_.Floats(policy_.shift, {SizeOf(policy_.shift)})});
    return graph_.Add("Clip", {shifted, graph_.Scalar(-policy_.observation_clip),
                               graph_.Scalar(policy_.observation_clip)});
  }

  // Images between layers are [batch, channels, height, width] here.
  std::string Layer(const NetworkLayer& layer, std::string given) {
    const bool reads_image = layer.source >= 0 && IsConvolution(layer.source);
    std::string result;
    if (layer.kind == NetworkLayer::Kind::kConvolution) {
      if (!reads_image) {
        given = graph_.Reshape(given, {-1, layer.channels, layer.height, layer.width});
      }
      result = Convolve(layer, given);
    } else {
      if (reads_image) {
        const std::string last = graph_.Add("Transpose", {given}, {{"perm[]", {0, 2, 3, 1}}});
        given = graph_.Reshape(last, {-1, layer.inputs});
      }
      result = Flat(layer, given);
    }
    if (layer.activation == NetworkLayer::Activation::kTanh) return graph_.Add("Tanh", {result});
    if (layer.activation == NetworkLayer::Activation::kRelu) return graph_.Add("Relu", {result});
    return result;
  }

  std::string Flat(const NetworkLayer& layer, const std::string& given) {
    if (layer.kind == NetworkLayer::Kind::kLstm) return Remember(layer, given);
    if (layer.kind == NetworkLayer::Kind::kLayerNorm) return Normalise(layer, given);
    if (layer.kind == NetworkLayer::Kind::kJoin) return graph_.Join({given, beside_});
    return Dense(layer, given);
  }

  bool IsConvolution(int layer) const {
    return policy_.network.layers[layer].kind == NetworkLayer::Kind::kConvolution;
  }

  std::string Dense(const NetworkLayer& layer, const std::string& given) {
    const std::int64_t columns = SizeOf(layer.bias);
    return graph_.Add("Gemm", {given, graph_.Floats(layer.weight, {layer.inputs, columns}),
                               graph_.Floats(layer.bias, {columns})});
  }

  // The operator's own epsilon is 1e-5.
  std::string Normalise(const NetworkLayer& layer, const std::string& given) {
    return graph_.Add("LayerNormalization", {given, graph_.Floats(layer.weight, {layer.outputs}),
                                             graph_.Floats(layer.bias, {layer.outputs})});
  }

  std::string Convolve(const NetworkLayer& layer, const std::string& given) {
    const std::int64_t filters = SizeOf(layer.bias);
    return graph_.Add(
        "Conv",
        {given, graph_.Floats(layer.weight, {filters, layer.channels, layer.kernel, layer.kernel}),
         graph_.Floats(layer.bias, {filters})},
        {{"kernel_shape[]", {layer.kernel, layer.kernel}},
         {"strides[]", {layer.stride, layer.stride}}});
  }

  std::string Remember(const NetworkLayer& layer, const std::string& given) {
    const std::int64_t size = layer.outputs;
    const std::string hidden = graph_.Columns("state", remembered_, remembered_ + size);
    const std::string cells = graph_.Columns("state", remembered_ + size, remembered_ + 2 * size);
    remembered_ += 2 * size;
    const std::string recurrent = graph_.Floats(layer.recurrent, {size, 4 * size});
    const std::string gates =
        graph_.Add("Add", {Dense(layer, given), graph_.Add("MatMul", {hidden, recurrent})});
    const auto part = [&](const char* squash, std::int64_t index) {
      return graph_.Add(squash, {graph_.Columns(gates, index * size, (index + 1) * size)});
    };
    const std::string written = graph_.Add("Mul", {part("Sigmoid", 1), part("Tanh", 0)});
    const std::string kept = graph_.Add("Mul", {part("Sigmoid", 2), cells});
    const std::string next_cells = graph_.Add("Add", {kept, written});
    std::string next_hidden =
        graph_.Add("Mul", {part("Sigmoid", 3), graph_.Add("Tanh", {next_cells})});
    states_.push_back(next_hidden);
    states_.push_back(next_cells);
    return next_hidden;
  }

  void Decide() {
    if (policy_.rule == ActionRule::kMean) return Clip();
    const bool values = policy_.rule == ActionRule::kLargestValue;
    const std::string name = values ? "values" : "logits";
    if (values) {
      Values(name);
    } else {
      graph_.Join({Head(0)}, name);
    }
    std::int64_t choices = 0;
    for (const std::int64_t count : policy_.action.counts) choices += count;
    Choose(name);
    graph_.AddOutput("action", DataType::kInt64, policy_.action.shape, MeaningOf(policy_.action));
    graph_.AddOutput(name, DataType::kFloat32, {choices},
                     values ? "the expected return of each action" : "a logit for each choice");
  }

  const std::string& Head(std::size_t index) const {
    return results_[policy_.network.heads[index]];
  }

  void Clip() {
    const LeafSpec& action = policy_.action;
    std::string value = graph_.Join({Head(0)}, "mean");
    const auto bounds = [&](const std::vector<double>& of) {
      std::vector<float> values(of.begin(), of.end());
      if (values.size() == 1) values.assign(action.elements(), values[0]);
      return graph_.Floats(values, {SizeOf(values)});
    };
    if (policy_.clips_action) {
      value = graph_.Add("Max", {value, bounds(action.low)});
      value = graph_.Add("Min", {value, bounds(action.high)});
    }
    OnnxGraph::Integers shape = action.shape;
    shape.insert(shape.begin(), -1);
    graph_.Reshape(value, shape, "action");
    graph_.AddOutput("action", DataType::kFloat32, action.shape, "");
    graph_.AddOutput("mean", DataType::kFloat32, {action.elements()}, "before it is clipped");
  }

  // [batch, actions] expected returns.
  void Values(const std::string& name) {
    const ActionValues& values = policy_.values;
    std::string atoms = graph_.Reshape(Head(0), {-1, values.actions, values.atoms});
    if (values.duelling) {
      const std::string mean = graph_.Add("ReduceMean", {atoms}, {{"axes[]", {1}}});
      const std::string base =
          graph_.Add("Sub", {graph_.Reshape(Head(1), {-1, 1, values.atoms}), mean});
      atoms = graph_.Add("Add", {atoms, base});
    }
    if (values.model != ReturnModel::kCategorical) {
      graph_.Add("ReduceMean", {atoms}, {{"axes[]", {2}}, {"keepdims", {0}}}, name);
      return;
    }
    std::vector<float> support;
    for (int atom = 0; atom < values.atoms; ++atom) support.push_back(values.support.at(atom));
    const std::string probabilities = graph_.Add("Softmax", {atoms}, {{"axis", {2}}});
    graph_.Add("MatMul", {probabilities, graph_.Floats(support, {values.atoms})}, {}, name);
  }

  // The first of the largest among what is allowed, for each element of the action.
  void Choose(const std::string& from) {
    const std::string allowed =
        mask_.empty() ? from : graph_.Add("Where", {mask_, from, graph_.Scalar(-kInfinity)});
    std::vector<std::string> elements;
    std::int64_t first = 0;
    for (const std::int64_t count : policy_.action.counts) {
      const std::string part = policy_.action.counts.size() == 1
                                   ? allowed
                                   : graph_.Columns(allowed, first, first + count);
      elements.push_back(graph_.Add("ArgMax", {part}, {{"axis", {1}}, {"keepdims", {1}}}));
      first += count;
    }
    OnnxGraph::Integers shape = policy_.action.shape;
    shape.insert(shape.begin(), -1);
    graph_.Reshape(graph_.Join(elements), shape, "action");
  }

  const PolicyDescription& policy_;
  OnnxGraph graph_;
  std::vector<std::string> results_;  // By layer.
  std::vector<std::string> states_;   // Of the LSTM layers, after the step.
  std::int64_t remembered_ = 0;       // Columns of "state" that have an owner.
  std::string beside_;                // The numbers beside images; empty: there are none.
  std::string mask_;                  // Flags [batch, choices]; empty: there is none.
};

}  // namespace

std::string OnnxOf(const PolicyDescription& policy,
                   const std::vector<std::pair<std::string, std::string>>& about) {
  return Translator(policy).Translate(about);
}

}  // namespace menger
