#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace menger {

// What a bundle holds (bundle_format.h), checked and laid out for BundlePlayer. This file and the
// player need nothing but the C++ standard library: libmenger_policy is made of them.

// One array that the policy reads, or its action.
struct BundleLeaf {
  std::string name;
  std::uint32_t dtype = 0;  // bundle_format::DataTypeCode.
  std::uint32_t space = 0;  // bundle_format::SpaceCode.
  std::vector<std::int64_t> shape;
  std::vector<int> counts;
  int elements = 0;

  bool is_code() const;      // One-hot in the encoding.
  int encoded_size() const;  // Numbers of the encoding.
};

// A layer as the file has it, but for its weights; see networks/network_layers.h.
struct BundleLayer {
  std::uint32_t kind = 0;        // bundle_format::LayerCode.
  std::uint32_t activation = 0;  // bundle_format::ActivationCode.
  int source = -1;
  int inputs = 0;
  int outputs = 0;
  int channels = 0;
  int height = 0;
  int width = 0;
  int kernel = 0;
  int stride = 0;
  // As the kernels read them: rows padded, [inner, Padded(columns)]. A convolution's weight is
  // [channels x kernel x kernel, Padded(filters)]; a normalisation's is its gain.
  std::vector<float> weight;
  std::vector<float> recurrent;
  std::vector<float> bias;

  int out_height() const { return (height - kernel) / stride + 1; }
  int out_width() const { return (width - kernel) / stride + 1; }
  int patch() const { return channels * kernel * kernel; }
  int filters() const { return outputs / (out_height() * out_width()); }
};

// A policy as the file has it (bundle_format.h says what each part is), checked whole. Value type.
struct PolicyBundle {
  std::string about;
  std::vector<BundleLeaf> observation;
  int mask_leaf = -1;
  int frame_stack = 1;
  int frame_size = 0;  // Numbers of one encoding,
  int beside = 0;      // of which the last so many stand beside an image.
  std::vector<float> scale;
  std::vector<float> shift;
  float clip = 0;
  std::vector<BundleLayer> layers;
  std::uint32_t rule = 0;  // bundle_format::RuleCode.
  std::vector<int> heads;
  std::uint32_t return_model = 0;  // bundle_format::ReturnModelCode.
  int actions = 0;
  int atoms = 0;
  bool duelling = false;
  float return_minimum = 0;
  float return_maximum = 0;
  int image_size() const { return frame_size - beside; }

  BundleLeaf action;
  std::vector<float> low;  // Empty: not clipped.
  std::vector<float> high;
};

// Checks every number before anything is read or allocated by it. Throws std::runtime_error that
// says what is wrong: not a bundle, of a newer version, cut short or altered, inconsistent.
PolicyBundle ReadBundle(const std::uint8_t* bytes, std::size_t size);

}  // namespace menger
