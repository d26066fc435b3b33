#pragma once

#include <memory>
#include <string>

#include "menger/environments/image.h"

namespace menger {

// A recording of a policy at work: frames in, one file out.
//
// The name says the format: .gif is written here, each frame with a palette of its own; .mp4 and
// .webm by the ffmpeg program. One thread.
class VideoFile {
 public:
  virtual ~VideoFile() = default;

  // The first frame decides the size; another size is InvalidArgument. Throws what the disk says.
  virtual void Add(const Image& frame) = 0;

  // Completes the file. Until then it has another name beside, and what was there before stays.
  virtual void Finish() = 0;
};

// Throws InvalidArgument for another ending, FailedPrecondition where ffmpeg is missing.
std::unique_ptr<VideoFile> CreateVideoFile(const std::string& path, double frames_per_second);

}  // namespace menger
