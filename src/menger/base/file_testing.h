#pragma once

// For tests of files and errors.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>

#include "menger/base/error.h"

namespace menger::testing_files {

// A folder of its own, empty before and gone after a test.
class Folder {
 public:
  Folder() : path_(testing::TempDir() + "menger_XXXXXX") {
    if (mkdtemp(path_.data()) == nullptr) ADD_FAILURE() << "cannot make " << path_;
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }

  const std::string& path() const { return path_; }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

inline void FlipBit(const std::string& file, std::uint64_t byte, int bit) {
  std::fstream bytes(file, std::ios::in | std::ios::out | std::ios::binary);
  bytes.seekg(static_cast<std::streamoff>(byte));
  const int value = bytes.get();
  bytes.seekp(static_cast<std::streamoff>(byte));
  bytes.put(static_cast<char>(value ^ (1 << bit)));
}

// The text of the Error of this code that `function` throws, or what it did instead.
inline std::string ErrorText(ErrorCode code, auto function) {
  try {
    function();
  } catch (const Error& error) {
    if (error.code() == code) return error.what();
    return std::string("another code: ") + ErrorCodeName(error.code()) + ": " + error.what();
  }
  return "nothing was thrown";
}

}  // namespace menger::testing_files
