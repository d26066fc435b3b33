#include "menger/training/video_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gif_lib.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>
#include <vector>

#include "menger/base/error.h"

namespace menger {
namespace {

constexpr int kPaletteSize = 256;

// Checks the size of frames, and writes beside until it is finished: what all formats need.
class SizedVideoFile : public VideoFile {
 public:
  explicit SizedVideoFile(const std::string& path) : path_(path) {
    const std::filesystem::path whole(path);
    part_ = whole;  // With the same ending, which says the format.
    part_.replace_extension(".part" + whole.extension().string());
  }
  ~SizedVideoFile() override {
    std::error_code error;
    if (!finished_) std::filesystem::remove(part_, error);
  }

  void Add(const Image& frame) final {
    if (width_ == 0) {
      width_ = frame.width;
      height_ = frame.height;
      Begin();
    }
    if (frame.width != width_ || frame.height != height_) {
      throw InvalidArgument("'{}': a frame of {} x {} pixels follows one of {} x {}", path_,
                            frame.width, frame.height, width_, height_);
    }
    Write(frame);
  }

  void Finish() final {
    if (width_ == 0) throw FailedPrecondition("'{}' would be empty: no frame was added", path_);
    End();
    std::error_code error;
    std::filesystem::rename(part_, path_, error);
    if (error) throw FromErrno("cannot name the film '" + path_ + "'", error.value());
    finished_ = true;
  }

 protected:
  virtual void Begin() = 0;
  virtual void Write(const Image& frame) = 0;
  virtual void End() = 0;

  const std::string& path() const { return path_; }
  std::string part() const { return part_.string(); }
  int width() const { return width_; }
  int height() const { return height_; }

 private:
  const std::string path_;
  std::filesystem::path part_;
  int width_ = 0;
  int height_ = 0;
  bool finished_ = false;
};

class GifFile final : public SizedVideoFile {
 public:
  GifFile(const std::string& path, double frames_per_second)
      : SizedVideoFile(path),
        delay_(std::max(2, static_cast<int>(std::lround(100 / frames_per_second)))) {
    int error = 0;
    const int descriptor = ::open(part().c_str(), O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0666);
    if (descriptor < 0) throw FromErrno("cannot write '" + path + "'", errno);
    file_.reset(EGifOpenFileHandle(descriptor, &error));
    if (file_ == nullptr) {
      ::close(descriptor);
      throw Unavailable("'{}' cannot be written: {}", path, GifErrorString(error));
    }
  }

 private:
  struct Close {
    void operator()(GifFileType* file) const { EGifCloseFile(file, nullptr); }
  };

  void Check(int result) {
    if (result == GIF_OK) return;
    throw Unavailable("'{}' cannot be written: {}", path(), GifErrorString(file_->Error));
  }

  void Begin() override {
    EGifSetGifVersion(file_.get(), /*gif89=*/true);
    Check(EGifPutScreenDesc(file_.get(), width(), height(), /*color_resolution=*/8,
                            /*background=*/0, /*palette=*/nullptr));
    static constexpr unsigned char kForEver[] = {1, 0, 0};  // The looping extension's data.
    Check(EGifPutExtensionLeader(file_.get(), APPLICATION_EXT_FUNC_CODE));
    Check(EGifPutExtensionBlock(file_.get(), 11, "NETSCAPE2.0"));
    Check(EGifPutExtensionBlock(file_.get(), sizeof(kForEver), kForEver));
    Check(EGifPutExtensionTrailer(file_.get()));
  }

  void Write(const Image& frame) override {
    const auto pixels = static_cast<std::size_t>(width()) * static_cast<std::size_t>(height());
    std::array<std::vector<GifByteType>, 3> planes;
    for (int channel = 0; channel < 3; ++channel) {
      planes[channel].resize(pixels);
      for (std::size_t i = 0; i < pixels; ++i) planes[channel][i] = frame.rgb[3 * i + channel];
    }
    std::vector<GifByteType> indices(pixels);
    std::array<GifColorType, kPaletteSize> colours{};
    int count = kPaletteSize;
    Check(GifQuantizeBuffer(static_cast<unsigned>(width()), static_cast<unsigned>(height()), &count,
                            planes[0].data(), planes[1].data(), planes[2].data(), indices.data(),
                            colours.data()));
    const std::unique_ptr<ColorMapObject, decltype(&GifFreeMapObject)> palette(
        GifMakeMapObject(kPaletteSize, colours.data()), &GifFreeMapObject);
    const GraphicsControlBlock control{.DisposalMode = DISPOSE_DO_NOT,
                                       .UserInputFlag = false,
                                       .DelayTime = delay_,
                                       .TransparentColor = NO_TRANSPARENT_COLOR};
    std::array<GifByteType, 4> extension{};
    EGifGCBToExtension(&control, extension.data());
    Check(
        EGifPutExtension(file_.get(), GRAPHICS_EXT_FUNC_CODE, extension.size(), extension.data()));
    Check(
        EGifPutImageDesc(file_.get(), 0, 0, width(), height(), /*interlace=*/false, palette.get()));
    for (int row = 0; row < height(); ++row) {
      Check(EGifPutLine(file_.get(), indices.data() + static_cast<std::size_t>(row) * width(),
                        width()));
    }
  }

  void End() override {
    int error = 0;
    if (EGifCloseFile(file_.release(), &error) != GIF_OK) {
      throw Unavailable("'{}' cannot be written: {}", path(), GifErrorString(error));
    }
  }

  const int delay_;  // Hundredths of a second. Viewers play anything below 2 slowly.
  std::unique_ptr<GifFileType, Close> file_;
};

// Raw frames into the ffmpeg program, which chooses the encoder by the file's name.
class FfmpegFile final : public SizedVideoFile {
 public:
  FfmpegFile(const std::string& path, double frames_per_second)
      : SizedVideoFile(path), frames_per_second_(frames_per_second) {
    if (std::system("command -v ffmpeg >/dev/null 2>&1") != 0) {
      throw FailedPrecondition(
          "'{}' needs the ffmpeg program, which is not installed (Debian: apt-get install ffmpeg); "
          "or give a name that ends in .gif",
          path);
    }
  }
  ~FfmpegFile() override {
    if (pipe_ != nullptr) ::pclose(pipe_);
  }

 private:
  // The path inside single quotes of a shell.
  static std::string Quoted(const std::string& text) {
    std::string quoted = "'";
    for (const char character : text) {
      quoted += character == '\'' ? std::string("'\\''") : std::string(1, character);
    }
    return quoted + "'";
  }

  void Begin() override {
    std::signal(SIGPIPE, SIG_IGN);  // A failed ffmpeg is reported by Finish.
    // In a session of its own: Ctrl-C at the terminal ends the recording, not its last frames.
    pipe_ = ::popen(
        fmt::format("exec setsid ffmpeg -loglevel error -y -f rawvideo -pix_fmt rgb24 -s {}x{} -r "
                    "{} -i - -vf 'pad=ceil(iw/2)*2:ceil(ih/2)*2' -pix_fmt yuv420p {}",
                    width(), height(), frames_per_second_, Quoted("./" + Relative()))
            .c_str(),
        "w");
    if (pipe_ == nullptr) throw Unavailable("ffmpeg could not be started for '{}'", path());
  }

  // A name that ffmpeg cannot take for an option or a protocol.
  std::string Relative() const {
    return std::filesystem::relative(std::filesystem::absolute(part())).string();
  }

  void Write(const Image& frame) override {
    if (std::fwrite(frame.rgb.data(), 1, frame.rgb.size(), pipe_) != frame.rgb.size()) {
      throw Unavailable("ffmpeg stopped taking frames for '{}'; its message stands above", path());
    }
  }

  void End() override {
    if (::pclose(std::exchange(pipe_, nullptr)) != 0) {
      throw Unavailable("ffmpeg could not write '{}'; its message stands above", path());
    }
  }

  const double frames_per_second_;
  std::FILE* pipe_ = nullptr;
};

}  // namespace

std::unique_ptr<VideoFile> CreateVideoFile(const std::string& path, double frames_per_second) {
  if (path.ends_with(".gif")) return std::make_unique<GifFile>(path, frames_per_second);
  if (path.ends_with(".mp4") || path.ends_with(".webm")) {
    return std::make_unique<FfmpegFile>(path, frames_per_second);
  }
  throw InvalidArgument("'{}' names no format; a recording ends in .gif, .mp4 or .webm", path);
}

}  // namespace menger
