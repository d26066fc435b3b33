#include "menger/runtime/cluster/program_manifest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "menger/base/build_identity.h"
#include "menger/base/file_testing.h"

namespace menger {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing_files::ErrorText;

constexpr FileContent kContent{.bytes = 7, .hash = {.high = 1, .low = 2}};

ProgramFile FolderFileNamed(const std::string& name) {
  return {.role = ProgramFile::Role::kFolderFile,
          .path = "/driver/" + name,
          .name = name,
          .mode = 0640,
          .content = kContent};
}

ProgramManifest OfImage() {
  ProgramManifest manifest{.version = ThisBuild().version,
                           .variables = {{"COLOUR", "green"}, {"EMPTY", ""}},
                           .memory_bytes_max = 1 << 20};
  manifest.files = {{.path = "/driver/program", .mode = 0755, .content = kContent},
                    {.role = ProgramFile::Role::kLibrary,
                     .path = "/driver/lib/libx.so.1",
                     .name = "libx.so.1",
                     .mode = 0755,
                     .content = kContent}};
  return manifest;
}

ProgramManifest OfScript() {
  ProgramManifest manifest{.version = ThisBuild().version,
                           .arguments = {"python3", "-m", "worker", ""},
                           .folder = "/driver",
                           .folder_is = ProgramManifest::Folder::kShipped};
  manifest.files = {FolderFileNamed("a.py"), FolderFileNamed("b/c d.py"), FolderFileNamed("b/..c")};
  return manifest;
}

TEST(ProgramManifestTest, WhatIsEncodedIsDecoded) {
  ProgramManifest needed = OfScript();
  needed.files.clear();
  needed.folder_is = ProgramManifest::Folder::kNeeded;
  needed.unshipped = "it has more than 2000 files";
  ProgramManifest kept = OfImage();
  kept.copied = true;
  for (const ProgramManifest& manifest : {OfImage(), OfScript(), needed, kept}) {
    EXPECT_EQ(DecodeManifest(EncodeManifest(manifest)), manifest);
  }
}

TEST(ProgramManifestTest, ManifestsOfWhichAPartIsMissingAreRefused) {
  for (const ProgramManifest& manifest : {OfImage(), OfScript()}) {
    const std::vector<std::byte> bytes = EncodeManifest(manifest);
    const std::size_t version = sizeof(std::uint32_t) + manifest.version.size();
    for (std::size_t size = version; size < bytes.size(); ++size) {
      EXPECT_THAT(ErrorText(ErrorCode::kInvalidArgument,
                            [&] { DecodeManifest(std::span(bytes).first(size)); }),
                  HasSubstr("manifest"));
    }
  }
  std::vector<std::byte> longer = EncodeManifest(OfImage());
  longer.push_back({});
  EXPECT_THAT(ErrorText(ErrorCode::kInvalidArgument, [&] { DecodeManifest(longer); }),
              HasSubstr("behind its end"));
}

TEST(ProgramManifestTest, NamesThatLeadOutOfTheFolderAreRefused) {
  for (const char* const name :
       {"", "/etc/passwd", "../a", "a/../../b", "a//b", "a/", "./a", "..", "a/.", "a/.."}) {
    ProgramManifest manifest = OfScript();
    manifest.files[0].name = name;
    EXPECT_THAT(
        ErrorText(ErrorCode::kInvalidArgument, [&] { DecodeManifest(EncodeManifest(manifest)); }),
        HasSubstr("below a folder"))
        << name;
  }
}

TEST(ProgramManifestTest, WhatIsNoProgramIsRefused) {
  using Change = std::function<void(ProgramManifest&)>;
  const std::vector<std::tuple<ProgramManifest, Change, std::string>> cases = {
      {OfImage(), [](auto& m) { m.files[1].name = "a/libx.so"; }, "plain name"},
      {OfImage(), [](auto& m) { m.files[1].name = ".."; }, "below a folder"},
      {OfImage(), [](auto& m) { m.files[0].name = "x"; }, "has no name"},
      {OfImage(), [](auto& m) { m.files[0].path = "program"; }, "absolute"},
      {OfImage(), [](auto& m) { m.files[0].path = std::string("/a\0b", 4); }, "has a 0"},
      {OfImage(), [](auto& m) { m.files[0].mode = 04755; }, "file.mode"},
      {OfImage(), [](auto& m) { m.files[0].content.bytes = ~0ULL; }, "no system"},
      {OfImage(), [](auto& m) { m.files.erase(m.files.begin()); }, "0 executables"},
      {OfImage(), [](auto& m) { m.arguments = {"python3"}; }, "1 executables"},
      {OfImage(), [](auto& m) { m.files.push_back(m.files[1]); }, "twice"},
      {OfImage(),
       [](auto& m) {
         m.variables = {{"A=B", "c"}};
       },
       "without '='"},
      {OfImage(),
       [](auto& m) {
         m.variables = {{"", "c"}};
       },
       "without '='"},
      {OfImage(),
       [](auto& m) {
         m.variables = {{"A", std::string(1, '\0')}};
       },
       "has a 0"},
      {OfScript(), [](auto& m) { m.files.push_back(FolderFileNamed("a.py/b")); }, "a file, too"},
      {OfScript(), [](auto& m) { m.folder_is = ProgramManifest::Folder::kNeeded; }, "not shipped"},
      {OfScript(), [](auto& m) { m.folder = ""; }, "no path"},
      {OfScript(), [](auto& m) { m.folder = "driver"; }, "absolute"},
  };
  for (const auto& [good, change, said] : cases) {
    ProgramManifest manifest = good;
    change(manifest);
    EXPECT_THAT(
        ErrorText(ErrorCode::kInvalidArgument, [&] { DecodeManifest(EncodeManifest(manifest)); }),
        HasSubstr(said));
  }
}

TEST(ProgramManifestTest, MoreThanMayBeIsRefused) {
  ProgramManifest many = OfScript();
  for (std::size_t i = 0; i < kManifestFilesMax; ++i) {
    many.files.push_back(FolderFileNamed(std::to_string(i)));
  }
  EXPECT_THAT(ErrorText(ErrorCode::kInvalidArgument, [&] { DecodeManifest(EncodeManifest(many)); }),
              HasSubstr("files; it may have 4096"));
  ProgramManifest large = OfImage();
  large.variables = {{"LARGE", std::string(kManifestBytesMax, 'x')}};
  EXPECT_THAT(ErrorText(ErrorCode::kInvalidArgument, [&] { EncodeManifest(large); }),
              HasSubstr("4194304"));
}

TEST(ProgramManifestTest, AnotherMinorVersionIsRefusedWithBothNamed) {
  const std::string& own = ThisBuild().version;
  CheckProgramVersion(own.substr(0, own.rfind('.')) + ".99");
  for (const char* const other : {"99.0.1", "99", "", "x"}) {
    ProgramManifest manifest = OfImage();
    manifest.version = other;
    EXPECT_THAT(ErrorText(ErrorCode::kFailedPrecondition,
                          [&] { DecodeManifest(EncodeManifest(manifest)); }),
                AllOf(HasSubstr(fmt::format("has menger {} ", other)), HasSubstr(own)));
  }
}

}  // namespace
}  // namespace menger
