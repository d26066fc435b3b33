#include "menger/tensor/tensor_view.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <vector>

#include "menger/base/error.h"

namespace menger {
namespace {

TEST(TensorViewTest, ItsValuesAreThoseOfTheMemoryThatItShows) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const TensorView view = ViewOf({2, 3}, std::span(values));
  EXPECT_EQ(view.dtype, DataType::kFloat32);
  EXPECT_EQ(view.bytes(), 24U);
  EXPECT_EQ(view.values<float>().data(), values.data());
  EXPECT_EQ(view.values<float>().size(), 6U);
}

TEST(TensorViewTest, WhatIsNoTensorIsRefused) {
  const std::vector<float> values(6);
  EXPECT_THROW(ViewOf({2, 2}, std::span(values)), Error);
  EXPECT_THROW(ViewOf({2, 3}, std::span(values)).values<std::int32_t>(), Error);
  TensorView view{.dtype = DataType::kFloat64, .shape = {-1}};
  EXPECT_THROW(view.bytes(), Error);
  view.shape = {std::int64_t{1} << 40, std::int64_t{1} << 40};
  EXPECT_THROW(view.bytes(), Error);
  view.shape = {1};
  view.dtype = static_cast<DataType>(9);
  EXPECT_THROW(view.bytes(), Error);
}

TEST(TensorViewTest, AScalarHasOneElementAndAnEmptyTensorNone) {
  EXPECT_EQ((TensorView{.shape = {}}.bytes()), 4U);
  EXPECT_EQ((TensorView{.shape = {3, 0}}.bytes()), 0U);
  EXPECT_EQ(TensorView{}.bytes(), 0U);
}

}  // namespace
}  // namespace menger
