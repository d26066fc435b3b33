#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <utility>
#include <vector>

#include "menger/base/thread.h"
#include "menger/runtime/driver/local_node.h"

namespace menger {

inline NodeLife LifeOf(std::uint64_t number) { return {NodeId{Id{.high = 1, .low = number}}, 1}; }

inline NodeRecord RecordOf(std::uint64_t number, Resources resources,
                           std::uint64_t store_bytes = 0) {
  const NodeLife life = LifeOf(number);
  return {.id = life.node,
          .epoch = life.epoch,
          .resources = std::move(resources),
          .store_bytes = store_bytes};
}

// Two nodes of this process that know each other, with workers of their own and a wire between
// them. The first has the driver, and "far" only the second. The options are of both, but for the
// second's store.
class TwoNodes {
 public:
  struct Options {
    bool beside = false;                // They show each other values.
    std::uint64_t far_store_bytes = 0;  // 0: as large as it likes.
    // Sees what is on its way to the first node, and may change it.
    std::function<void(NodeLetter& letter)> on_way = [](NodeLetter&) {};
  };
  explicit TwoNodes(RuntimeOptions options = {.workers = 1}) : TwoNodes(options, Options()) {}
  TwoNodes(RuntimeOptions options, Options way) : on_way_(std::move(way.on_way)) {
    options.job = 77;
    options.isolation = Isolation::kProcess;
    near_ = New(options, 0);
    options.resources.Set("cpu", 2);
    options.resources.Set("far", 2);
    options.workers = 2;
    options.store_bytes_max = way.far_store_bytes;
    far_ = New(options, 1);
    wire_ = Thread({.name = "wire"}, [this] { Carry(); });
    Resources far;
    far.Set("cpu", 2);
    far.Set("far", 2);
    near_->Meet(RecordOf(1, far, way.far_store_bytes), way.beside);
    far_->Meet(RecordOf(0, Resources(1, 0)), way.beside);
  }
  ~TwoNodes() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    wire_.Join();  // A node that has ended is told nothing any longer.
    near_->End();
    far_->End();
  }
  LocalNode& near() { return *near_; }
  LocalNode& far() { return *far_; }

 private:
  struct Parcel {
    std::uint64_t from = 0;
    std::vector<Neighbours::Flying> packets;
  };

  LocalNode* New(const RuntimeOptions& options, std::uint64_t number) {
    return new LocalNode(
        options, LocalNode::Place{.own = LifeOf(number),
                                  .post = [this, number](std::vector<Neighbours::Flying> packets) {
                                    const std::lock_guard lock(mutex_);
                                    parcels_.push_back({number, std::move(packets)});
                                    changed_.notify_all();
                                  }});
  }
  void Carry() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return ended_ || !parcels_.empty(); });
      if (ended_) return;
      Parcel parcel = std::move(parcels_.front());
      parcels_.pop_front();
      lock.unlock();
      for (Neighbours::Flying& flying : parcel.packets) {
        flying.node = LifeOf(parcel.from);
        SharedLetter& letter = flying.packet.letter;
        if (letter == nullptr) continue;
        letter = std::make_shared<NodeLetter>(*letter);  // The sender has his.
        if (parcel.from == 1) on_way_(*letter);
      }
      (parcel.from == 0 ? *far_ : *near_).Arrive(std::move(parcel.packets));
      lock.lock();
    }
  }

  const std::function<void(NodeLetter& letter)> on_way_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Parcel> parcels_;
  bool ended_ = false;
  LocalNode* near_ = nullptr;
  LocalNode* far_ = nullptr;
  Thread wire_;
};

}  // namespace menger
