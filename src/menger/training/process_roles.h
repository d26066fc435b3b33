#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "menger/base/clock.h"
#include "menger/base/sharing/descriptor_server.h"
#include "menger/base/temporary_folder.h"
#include "menger/parameters/shared_parameters.h"
#include "menger/runtime/runtime.h"
#include "menger/tensor/memory.h"
#include "menger/training/pipeline_roles.h"
#include "menger/training/role_actors.h"

namespace menger {

// Roles as actors of a runtime, each in a process of its own: replay, the learner, collectors.
//
// What they share lives here and outlives them: versions of parameters and the count of steps. So a
// process that dies costs what it alone had, and another takes its place: a collector begins fresh
// episodes under seeds of another attempt, the learner what was saved last, under a higher
// incarnation, replay what was saved last of its content. A role that throws ends the run.
//
// Borrows what it is given. The algorithm and the update rule have what the run begins with.
class ProcessRoles final : public PipelineRoles {
 public:
  ProcessRoles(const Experiment& experiment, ReplayAlgorithm& algorithm, UpdateRule& update);

  void Begin(const PipelineStart& start) override;
  const ParameterSource& parameters() const override { return *parameters_; }
  PipelineNews Look(std::chrono::nanoseconds time) override;
  void GoOn() override;
  std::shared_ptr<const ParameterBlob> Save(ArchiveWriter& archive, bool with_replay) override;
  void Stop() override;

 private:
  // A role, whoever plays it at present.
  struct Seat {
    std::string name;
    std::function<void()> make;  // Gives the role to a new process.
    std::function<ObjectRef<RoleReport>(std::chrono::nanoseconds slice)> advance;
    std::optional<ObjectRef<RoleReport>> call;  // Under way.
    RoleStatus status;                          // As it was told last.
    Stopwatch since_told;
    std::int64_t done_before = 0;  // By those that died.
    std::int64_t restarts = 0;
    int deaths = 0;              // In a row, before they had done anything.
    bool resting = false;        // It is not to be advanced.
    bool done = false;           // It has no more to do, or has failed.
    bool saved = false;          // Since it was told to.
    std::optional<Error> error;  // That it threw.
  };

  RoleSpec Spec() const;
  void MakeLearner();
  void MakeReplay();
  void MakeCollector(std::size_t index);
  void MakeInference();
  Seat CollectorSeat(std::size_t index);
  std::vector<Seat*> Seats();
  bool IsCollector(const Seat& seat) const;
  // Advances who does not rest, for a slice, and hears what they tell, until then.
  void Tend(const Deadline& end, std::chrono::nanoseconds slice);
  void Hear(Seat& seat);
  void Fail(Seat& seat, const Error& error);
  void Replace(Seat& seat, const TaskError& cause);
  // Calls one that saves, while the others go on; again with another process where this one dies.
  void SaveBy(Seat& seat, const std::function<ObjectRef<RoleReport>()>& save);
  RoleStatus StatusOf(const Seat& seat) const;

  const Experiment& experiment_;
  ReplayAlgorithm& algorithm_;
  UpdateRule& update_;
  const TemporaryFolder folder_;  // Where roles meet.
  SharedPublication publication_;
  const std::unique_ptr<SharedParameters> parameters_;
  const std::unique_ptr<SharedMemory> memory_;
  RunMemory& run_;
  const DescriptorServer shared_;

  std::int64_t attempt_ = 0;
  std::int64_t incarnation_ = 0;
  std::string replay_saved_;  // Where replay's content was saved last; empty: nowhere.
  PipelineNews news_;         // That nobody has looked at,
  MetricMeans metrics_;       // and of updates among it.
  BatchMoments observed_;     // By collectors, and not told the learner yet.
  const Seat* failed_ = nullptr;

  const std::vector<CollectorShare> shares_;
  Seat learner_seat_, replay_seat_;
  std::optional<Seat> inference_seat_;  // Where it is apart.
  std::vector<Seat> collector_seats_;   // By share; these two are not resized.
  std::unique_ptr<Runtime> runtime_;    // Last but those who live in it.
  ActorRef<ReplayActor> replay_;
  ActorRef<LearnerActor> learner_;
  std::vector<ActorRef<CollectorActor>> collectors_;
  ActorRef<InferenceActor> inference_;
};

}  // namespace menger
