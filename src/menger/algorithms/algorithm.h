#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "menger/algorithms/algorithm_context.h"
#include "menger/algorithms/policy_maker.h"
#include "menger/base/archive.h"
#include "menger/base/options.h"
#include "menger/environments/environment.h"
#include "menger/networks/update_rule.h"
#include "menger/parameters/publication.h"

namespace menger {

// Named numbers that an update reports, in a fixed order: "policy_loss", "kl", ... Columns of
// progress.csv have these names: each is there once, is none of the loop's own and has no comma.
using Metrics = std::vector<std::pair<std::string, double>>;

// Which shape of data an algorithm learns from; a training loop serves one of them.
enum class DataRule : std::uint8_t {
  kSlabs,     // Fresh slabs, read in place (PPO, A2C; V-trace corrected: IMPALA).
  kBatches,   // Batches drawn from replay.
  kEpisodes,  // Returns of whole episodes, which workers of the runtime play (ES).
};

// Owns networks and loss; knows nothing of threads, files or time.
//
// policies() and publication() may be used by any thread; all other calls come from the learner's.
class Algorithm {
 public:
  virtual ~Algorithm() = default;

  virtual DataRule data_rule() const = 0;

  // What its policies are, which follow the publication: learning changes private parameters;
  // Publish makes them visible.
  virtual const PolicyMaker& policies() const = 0;
  virtual Publication& publication() = 0;
  virtual void Publish() = 0;

  // Called by the learner before each collection: takes over and publishes what others have made of
  // parameters that are shared without waiting (UpdateRule::Pull).
  virtual void BeforeCollection(UpdateRule& /*update*/) {}

  // One that follows the publication; the algorithm outlives it.
  std::unique_ptr<Policy> MakePolicy(PolicyMode mode, std::uint64_t seed) {
    return policies().Make(publication(), mode, seed);
  }

  // The greedy policy of the parameters as last published: see PolicyMaker::Describe.
  PolicyDescription DescribePolicy() {
    return policies().Describe(publication().Latest()->values());
  }

  // Floats that an update rule will change.
  virtual std::int64_t parameter_count() const = 0;
  // The same in groups, each with an optimiser of its own.
  virtual std::vector<ParameterGroup> parameter_groups() const {
    return {{.name = "parameters", .count = parameter_count()}};
  }

  // Parameters, normalisation statistics, random streams and counters. Optimiser state is the
  // update rule's. Loading throws FailedPrecondition, naming the first difference, if the archive
  // is of another architecture.
  virtual void Save(ArchiveWriter& archive) const = 0;
  virtual void Load(ArchiveReader& archive) = 0;
  // Parameters and statistics only, published at once: another run's result as a start.
  virtual void LoadParameters(ArchiveReader& archive) = 0;
};

// Learns from fresh slabs.
class SlabAlgorithm : public Algorithm {
 public:
  DataRule data_rule() const final { return DataRule::kSlabs; }

  // One update from one slab a collector (usually one). `progress` in [0, 1] is the share of the
  // run's steps collected before these slabs, for schedules. Reports metric_names(), in that order,
  // each a total over all learners (UpdateRule::Sum); without a valid row the parameters stay as
  // they are. Throws InvalidArgument if the slabs differ in horizon, Internal if the gradient is
  // not finite: the parameters are then those of the last good step.
  virtual Metrics Learn(std::span<Slab* const> slabs, UpdateRule& update, double progress) = 0;
  virtual std::vector<std::string> metric_names() const = 0;
};

// An algorithm by name: its options (each declared once), whether it fits an environment, and how
// to make it.
class AlgorithmEntry {
 public:
  virtual ~AlgorithmEntry() = default;
  virtual std::string name() const = 0;
  virtual std::string description() const = 0;
  // That of what Make makes: a recipe has a section [replay] where it is kBatches, and where it is
  // kEpisodes [runtime] instead of [collector].
  virtual DataRule data_rule() const { return DataRule::kSlabs; }
  // Binds a fresh configuration's options (section named after the algorithm) to `options`.
  virtual void Declare(Options& options) = 0;
  // What options of all sections are where a recipe says nothing, for an environment and a run of
  // so many steps, so that a recipe of two lines learns. What it leaves out is as declared.
  virtual std::vector<OptionDefault> Defaults(const EnvironmentSpec& /*environment*/,
                                              std::int64_t /*steps*/) const {
    return {};
  }
  // Throws InvalidArgument that says what does not fit (continuous actions with a discrete-only
  // algorithm).
  virtual void Check(const EnvironmentSpec& environment) const = 0;
  // These two use the declared configuration as it stands. What MakePolicies makes needs no
  // learner, and its policies follow those that Make makes, wherever they are.
  virtual std::unique_ptr<Algorithm> Make(const AlgorithmContext& context) const = 0;
  virtual std::unique_ptr<PolicyMaker> MakePolicies(const AlgorithmContext& context) const = 0;
};

// All algorithms of the program, in the order of `menger list`: one line each, composed here and
// nowhere else.
std::vector<std::unique_ptr<AlgorithmEntry>> AllAlgorithms();

// Returns the entries. Throws Internal, naming the first, if a name is not made of [a-z0-9_] with a
// letter at its front, if two entries have one, or if a recipe has a section or an option of that
// name.
std::vector<std::unique_ptr<AlgorithmEntry>> WithCheckedNames(
    std::vector<std::unique_ptr<AlgorithmEntry>> entries);

}  // namespace menger
