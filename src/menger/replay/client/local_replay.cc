#include "menger/replay/client/local_replay.h"

#include "menger/base/error.h"

namespace menger {
namespace {

class LocalWriter final : public ReplayWriter {
 public:
  LocalWriter(ReplayStore& store, const Spec& steps, const WriterOptions& options, int streams)
      : store_(store) {
    for (int i = 0; i < streams; ++i) streams_.push_back(store.NewWriter(steps, options));
  }

  int streams() const override { return static_cast<int>(streams_.size()); }

  std::int64_t Append(int stream, std::span<const std::byte* const> leaves,
                      std::uint64_t version) override {
    return At(stream).Append(leaves, version);
  }
  void Add(int stream, int table, std::optional<double> priority,
           std::span<const StepRange> columns) override {
    CheckIndex("table", table, store_.tables());
    At(stream).Add(store_.table(table), priority, columns);
  }
  void Flush(int stream, const Deadline& deadline) override { At(stream).Flush(deadline); }
  void Await(const Deadline& /*deadline*/) override {}

  std::int64_t steps(int stream) const override { return At(stream).steps(); }
  int pending(int stream) const override { return At(stream).pending(); }

  std::vector<TrajectoryWriter*> all() const {
    std::vector<TrajectoryWriter*> all;
    for (const auto& stream : streams_) all.push_back(stream.get());
    return all;
  }

 private:
  TrajectoryWriter& At(int stream) const {
    CheckIndex("stream", stream, streams());
    return *streams_[stream];
  }

  ReplayStore& store_;
  std::vector<std::unique_ptr<TrajectoryWriter>> streams_;
};

class LocalSampler final : public ReplaySampler {
 public:
  explicit LocalSampler(Table& table) : table_(table) {}

  const ItemSpec& items() const override { return table_.options().items; }
  void SampleInto(const SampleRequest& request, Sample& sample) override {
    table_.SampleInto(request, sample);
  }

 private:
  Table& table_;
};

}  // namespace

std::unique_ptr<ReplayWriter> LocalReplay::NewWriter(const Spec& steps,
                                                     const WriterOptions& options, int streams) {
  if (streams < 1) throw InvalidArgument("a writer of {} streams; it has at least 1", streams);
  return std::make_unique<LocalWriter>(store_, steps, options, streams);
}

std::unique_ptr<ReplaySampler> LocalReplay::NewSampler(int table) {
  CheckIndex("table", table, tables());
  return SamplerOf(store_.table(table));
}

std::unique_ptr<ReplaySampler> LocalReplay::SamplerOf(Table& table) {
  return std::make_unique<LocalSampler>(table);
}

std::vector<TrajectoryWriter*> LocalReplay::StreamsOf(ReplayWriter& writer) {
  const auto* const local = dynamic_cast<const LocalWriter*>(&writer);
  if (local == nullptr) throw Internal("streams were asked for of a writer to another process");
  return local->all();
}

}  // namespace menger
