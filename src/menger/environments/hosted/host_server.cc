#include "menger/environments/hosted/host_server.h"

#include <charconv>
#include <cstdio>
#include <cstring>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "menger/base/error.h"
#include "menger/base/log_listener.h"
#include "menger/environments/hosted/protocol.h"
#include "menger/environments/hosted/spec_json.h"

namespace menger {
namespace {

constexpr std::chrono::seconds kPatience{3600};
constexpr std::size_t kWarningsMax = 100;  // Kept for the next answer.

// What this process warns of, which goes to menger: nobody reads a host's standard error. Any
// thread.
class Warnings {
 public:
  void Add(std::string_view text) {
    const std::lock_guard lock(mutex_);
    if (texts_.size() < kWarningsMax) texts_.emplace_back(text);
  }
  std::vector<std::string> Take() {
    const std::lock_guard lock(mutex_);
    return std::exchange(texts_, {});
  }

 private:
  std::mutex mutex_;
  std::vector<std::string> texts_;  // Guarded by mutex_.
};

// Does what requests say; throws what goes wrong.
class Server {
 public:
  // All are borrowed.
  Server(HostEnd& end, Warnings& warnings, const HostedEntryFactory& open)
      : end_(end), warnings_(warnings), open_(open) {}

  // Returns the text out.
  std::string Do(HostCommand command) {
    HostControl& control = end_.control();
    errors_.emplace(control.restarts_left);
    control.restarts_used = 0;
    if (slab_) slab_->set_first_step(control.first_step);
    switch (command) {
      case HostCommand::kDescribe:
        return ToJson({.spec = open_(ReadHostText(control)).spec, .resumable = true});
      case HostCommand::kAttach:
        Attach(HostAttachmentFromJson(ReadHostText(control)));
        return {};
      case HostCommand::kSave: {
        ArchiveWriter archive(ReadHostText(control));
        Group().Save(archive);
        archive.Commit();
        return {};
      }
      case HostCommand::kRender:
        return ToText(Group().Render(control.row));
      case HostCommand::kRefuse: {
        const auto refused = nlohmann::json::parse(ReadHostText(control));
        throw FailedPrecondition("{}: {}", refused.at("place").get<std::string>(),
                                 refused.at("why").get<std::string>());
      }
      case HostCommand::kLoad: {
        ArchiveReader archive(ReadHostText(control));
        Group().Load(archive);
        return {};
      }
      default:
        return Step(command);
    }
  }

 private:
  static std::string ToText(const Image& image) {
    const std::int32_t size[] = {image.width, image.height};
    std::string text(sizeof(size) + image.rgb.size(), '\0');
    std::memcpy(text.data(), size, sizeof(size));
    std::memcpy(text.data() + sizeof(size), image.rgb.data(), image.rgb.size());
    return text;
  }

  EnvironmentGroup& Group() {
    if (group_ == nullptr) throw FailedPrecondition("the host has not been attached to a slab");
    return *group_;
  }

  void Attach(HostAttachment attachment) {
    const std::size_t bytes = Slab::BytesNeeded(attachment.slab);
    slab_.emplace(attachment.slab, MapSharedMemory(attachment.descriptor, bytes));
    const EnvironmentEntry entry = open_(attachment.request);
    attachment.group.errors = &*errors_;  // Made anew, in place, for each request.
    group_ = entry.make_group(attachment.group);
  }

  std::string Step(HostCommand command) {
    try {
      StepGroup(command);
    } catch (...) {
      NoteRestarts();
      throw;
    }
    NoteRestarts();
    return NewsOf(Group());
  }

  // One that was wanted and was not left counts as well: so menger knows why the error came.
  void NoteRestarts() {
    HostControl& control = end_.control();
    control.restarts_used = control.restarts_left - errors_->left() + (errors_->exceeded() ? 1 : 0);
  }

  void StepGroup(HostCommand command) {
    EnvironmentGroup& group = Group();
    const HostControl& control = end_.control();
    switch (command) {
      case HostCommand::kReset:
        group.Reset(*slab_, control.row);
        break;
      case HostCommand::kStep:
        group.Step(*slab_, control.row);
        break;
      case HostCommand::kResetParked:
        group.ResetParked(*slab_, control.row);
        break;
      case HostCommand::kStepRandomly: {
        const auto request = nlohmann::json::parse(ReadHostText(control));
        const auto steps = request.at("steps").get<std::vector<int>>();
        group.StepRandomly(*slab_, control.row, steps, control.seed);
        break;
      }
      default:
        throw InvalidArgument("a host cannot do command {}", static_cast<int>(command));
    }
  }

  // What it has to say besides its answer: a text for the reply.
  std::string NewsOf(EnvironmentGroup& group) {
    const std::vector<EnvironmentMetric> metrics = group.TakeMetrics();
    std::vector<std::string> warnings = warnings_.Take();
    if (metrics.empty() && warnings.empty()) return {};
    nlohmann::json said;
    if (!warnings.empty()) said["restarts"] = std::move(warnings);
    for (const EnvironmentMetric& metric : metrics) {
      said["metrics"][metric.name] = {metric.sum, metric.count};
    }
    // Texts of others need not be UTF-8.
    return said.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  }

  HostEnd& end_;
  Warnings& warnings_;
  const HostedEntryFactory& open_;
  std::optional<ErrorBudget> errors_;
  std::optional<Slab> slab_;
  std::unique_ptr<EnvironmentGroup> group_;
};

int Serve(int descriptor, const HostedEntryFactory& open) {
  HostEnd end(descriptor);
  const auto warnings = std::make_shared<Warnings>();  // Threads may log until the process ends.
  SetLogListener([warnings](LogLevel level, std::string_view text) {
    if (level >= LogLevel::kWarning) warnings->Add(text);
  });
  Server server(end, *warnings, open);
  while (true) {
    if (!end.Wait(kPatience)) continue;
    const HostCommand command = end.command();
    if (command == HostCommand::kClose) {
      end.Done();
      return 0;
    }
    try {
      end.Done(server.Do(command));
    } catch (...) {
      const Error error = TranslateCurrentException();
      end.Failed(static_cast<int>(error.code()), error.what());
    }
  }
}

}  // namespace

int ServeGroup(int argc, char** argv, const HostedEntryFactory& open) {
  const std::span<char*> arguments(argv, static_cast<std::size_t>(argc));
  try {
    for (std::size_t i = 1; i + 1 < arguments.size(); ++i) {
      const std::string_view name = arguments[i];
      const std::string_view value = arguments[i + 1];
      if (name == "--describe") {
        std::puts(ToJson({.spec = open(std::string(value)).spec, .resumable = true}).c_str());
        return 0;
      }
      if (name != "--control") continue;
      int descriptor = -1;
      std::from_chars(value.data(), value.data() + value.size(), descriptor);
      return Serve(descriptor, open);
    }
  } catch (...) {
    std::fprintf(stderr, "%s: %s\n", arguments[0], TranslateCurrentException().what());
    return 1;
  }
  std::fprintf(stderr, "%s is started by menger, or with --describe REQUEST\n", arguments[0]);
  return 2;
}

}  // namespace menger
