#include "menger/training/video_file.h"

#include <gif_lib.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "menger/base/error.h"

namespace menger {
namespace {

std::string TemporaryPath(const std::string& name) {
  return (std::filesystem::path(::testing::TempDir()) / name).string();
}

Image Plain(int width, int height, std::uint8_t red, std::uint8_t green) {
  Image image{.width = width, .height = height, .rgb = {}};
  for (int i = 0; i < width * height; ++i) {
    image.rgb.insert(image.rgb.end(), {red, green, 0});
  }
  return image;
}

TEST(VideoFileTest, AGifHoldsEveryFrameInItsColoursAndTheAskedSpeed) {
  const std::string path = TemporaryPath("video_file_test.gif");
  const auto video = CreateVideoFile(path, /*frames_per_second=*/20);
  video->Add(Plain(6, 4, 255, 0));
  video->Add(Plain(6, 4, 0, 255));
  video->Finish();

  int error = 0;
  GifFileType* const file = DGifOpenFileName(path.c_str(), &error);  // Another reader's eyes.
  ASSERT_NE(file, nullptr);
  ASSERT_EQ(DGifSlurp(file), GIF_OK);
  ASSERT_EQ(file->ImageCount, 2);
  EXPECT_EQ(file->SWidth, 6);
  EXPECT_EQ(file->SHeight, 4);
  for (int i = 0; i < 2; ++i) {
    const SavedImage& image = file->SavedImages[i];
    const GifColorType& colour = image.ImageDesc.ColorMap->Colors[image.RasterBits[23]];
    EXPECT_NEAR(colour.Red, i == 0 ? 255 : 0, 8);
    EXPECT_NEAR(colour.Green, i == 0 ? 0 : 255, 8);
    GraphicsControlBlock control;
    ASSERT_EQ(DGifSavedExtensionToGCB(file, i, &control), GIF_OK);
    EXPECT_EQ(control.DelayTime, 5);  // Hundredths of a second.
  }
  DGifCloseFile(file, &error);
}

TEST(VideoFileTest, AFrameOfAnotherSizeIsRefusedAndAnUnfinishedFilmLeavesWhatWasThere) {
  const std::string path = TemporaryPath("video_file_unfinished.gif");
  std::ofstream(path) << "an earlier film";
  {
    const auto video = CreateVideoFile(path, 10);
    video->Add(Plain(6, 4, 1, 2));
    EXPECT_THROW(video->Add(Plain(4, 6, 1, 2)), Error);
  }
  EXPECT_EQ(std::filesystem::file_size(path), 15U);
  EXPECT_FALSE(std::filesystem::exists(TemporaryPath("video_file_unfinished.part.gif")));
}

TEST(VideoFileTest, AnUnknownEndingNamesTheFormatsThatThereAre) {
  try {
    CreateVideoFile("policy.avi", 10);
    FAIL() << ".avi was accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
    EXPECT_THAT(error.what(), ::testing::HasSubstr(".gif, .mp4 or .webm"));
  }
}

}  // namespace
}  // namespace menger
