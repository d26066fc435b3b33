// What does a call cost the node's logic alone, with the map that NODE_MAP names in the place of
// IdMap? A library with one function, for store_and_map.cc: peer_maps.h is included before all
// else, in the node's sources, too.

#include <deque>
#include <random>
#include <vector>

#include "menger/runtime/node/node_machine.h"
#include "rows.h"

namespace menger::bench {
namespace {

// A driver and one worker, whose queue this is.
class Node : public NodeEffects {
 public:
  Node() : machine_({.resources = Resources(1, 0), .workers = 1}, *this) {}

  bool Offer(Worker&, const Task& task) override {
    queue_.push_back(&task);
    return true;
  }
  bool Recall(Worker&, const Task& task) override { return std::erase(queue_, &task) > 0; }
  void Announce(Worker&) override {}
  void StartWorker() override { worker_ = &machine_.AddWorker(machine_.NewWorkerIndex()); }
  void Ready(const Watch&, Object&) override {}
  void Free(const ObjectValue&) override {}
  void EndWorker(Worker&, std::string_view) override {}
  void Interrupt(Worker&, const Task&) override {}

  // A call is made, with some live object as its argument, and done.
  void Call() {
    SpecHeader header{.task = ChildTask(RunOf(RootTask(1), 0), ++calls_), .parent = RootTask(1)};
    SpecBuilder builder(header, live_.empty() ? 0 : 1, {}, "", "call", 0);
    if (!live_.empty()) builder.AddReference(live_[random_() % live_.size()]);
    live_.push_back(ResultOf(header.task, 0));
    machine_.Submit(kDriver, builder.Finish());
    machine_.Run();
    const Task& task = *queue_.front();
    queue_.pop_front();
    TaskResult result{ObjectValue::Inline(Payload::Allocate(8)), {}};
    machine_.Finished(*worker_, task.lease, {&result, 1}, 1000);
    machine_.Run();
  }
  void ForgetSome() {
    ObjectTable& objects = machine_.objects();
    std::swap(live_[random_() % live_.size()], live_.back());
    objects.DropReferrer(kDriver, *objects.Find(live_.back()));
    live_.pop_back();
  }

 private:
  std::deque<const Task*> queue_;
  std::vector<ObjectId> live_;
  std::uint64_t calls_ = 0;
  std::mt19937_64 random_{1};
  Worker* worker_ = nullptr;
  NodeMachine machine_;
};

}  // namespace
}  // namespace menger::bench

// Nanoseconds of the thread a call, while so many objects are alive.
extern "C" __attribute__((visibility("default"))) double NodeCall(int live, int calls) {
  menger::bench::Node node;
  for (int i = 0; i < live; ++i) node.Call();
  const menger::bench::CpuWatch watch;
  for (int i = 0; i < calls; ++i) {
    node.Call();
    node.ForgetSome();
  }
  return watch.nanoseconds() / calls;
}
