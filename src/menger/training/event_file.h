#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "menger/base/options.h"
#include "menger/training/append_file.h"

namespace menger {

// CRC-32C (Castagnoli polynomial), as TensorFlow's record files use it.
std::uint32_t Crc32c(std::string_view bytes);

// A file of scalars and settings that TensorBoard reads: length-prefixed records of event.proto,
// each with masked checksums of its length and of its data. One thread at a time.
class EventFile {
 public:
  explicit EventFile(const std::string& path);  // Goes on with the file that is there.

  // One event with a value for each tag. `wall_time` is in seconds since 1970.
  void Append(std::int64_t step, double wall_time,
              const std::vector<std::pair<std::string, double>>& scalars);

  // What the run is: its configuration as a text ("settings"), and each setting by its key for
  // TensorBoard's table of hyperparameters, where numbers and flags stay what they are.
  void AppendSettings(double wall_time, std::string_view toml,
                      const std::vector<std::pair<std::string, OptionValue>>& settings);

  void TruncateTo(std::uint64_t size);  // See AppendFile.
  void Sync() { file_.Sync(); }
  std::uint64_t size() const { return file_.size(); }

 private:
  void AppendRecord(const std::string& data);
  void AppendVersion();

  AppendFile file_;
};

}  // namespace menger
