#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "menger/runtime/calls/client.h"
#include "menger/runtime/calls/function.h"
#include "menger/runtime/values/serialise.h"

namespace menger {

// Streams: calls whose results come one by one, before they are done.
//
//   void Primes(Emitter<int>& emit, int below) { ... emit(p); ... }
//
//   ObjectStream<int> primes = runtime.Stream<Primes>(1'000'000);
//   for (const ObjectRef<int>& prime : primes) Use(runtime.Get(prime));
//
// A function (or an actor's method) that takes an Emitter<T>& first, or after Runtime&, and returns
// nothing, yields what it emits. It is ahead of the reader by CallOptions::stream_ahead items at
// the most, then waits. If its worker dies it runs again and yields the same items once more, of
// which the reader sees each once: so they must be the same. If it throws, the reader gets the
// items before, then the error.
//
// Item i of a call is ResultOf(call, i + 1); result 0, how many there were, comes last.

// Takes the items of the call that this thread runs.
template <typename T>
class Emitter {
 public:
  explicit Emitter(ItemSink& sink) : sink_(sink) {}

  // Throws Cancelled when the reader wants no more: let it pass.
  void operator()(const T& item) {
    std::vector<ObjectHandle> references;
    const std::size_t bytes = EncodedSize(item, &references);
    sink_.Emit(
        bytes, [&item](std::span<std::byte> out) { Encode(item, out); }, references);
    ++count_;
  }
  std::uint64_t count() const { return count_; }

 private:
  ItemSink& sink_;
  std::uint64_t count_ = 0;
};

// The end of a stream at its reader, without the type of its items.
class StreamReader {
 public:
  StreamReader() = default;  // At its end.
  StreamReader(TaskId call, ObjectHandle end) : call_(call), end_(std::move(end)) {}
  StreamReader(StreamReader&& other) noexcept { Swap(other); }
  StreamReader& operator=(StreamReader other) noexcept {
    Swap(other);
    return *this;
  }
  ~StreamReader();

  // The next item; one that refers to nothing at the end.
  ObjectHandle Next(std::chrono::nanoseconds timeout);

 private:
  void Swap(StreamReader& other) noexcept;
  void AtEnd();
  Client& client() const { return *static_cast<Client*>(end_.reference()->owner); }

  TaskId call_;
  ObjectHandle end_;
  ObjectHandle item_;  // The next one.
  std::uint64_t next_ = 0;
};

// The items of a call, in order, each as soon as it is there. Dropped before its end it cancels the
// call. Movable; not sent to other processes; one thread at a time.
template <typename T>
class ObjectStream {
 public:
  ObjectStream() = default;
  ObjectStream(TaskId call, ObjectHandle end) : reader_(call, std::move(end)) {}

  // The next item; nothing at the end. Throws TaskError if the call failed after the items that
  // were given, DeadlineExceeded (and goes on afterwards).
  std::optional<ObjectRef<T>> Next(std::chrono::nanoseconds timeout = kNoTimeout) {
    ObjectHandle item = reader_.Next(timeout);
    if (!item.valid()) return std::nullopt;
    return ObjectRef<T>(std::move(item));
  }

  // What is left, once.
  class Iterator {
   public:
    using value_type = ObjectRef<T>;
    using difference_type = std::ptrdiff_t;
    Iterator() = default;
    explicit Iterator(ObjectStream& stream) : stream_(&stream), item_(stream.Next()) {}
    const ObjectRef<T>& operator*() const { return *item_; }
    Iterator& operator++() {
      item_ = stream_->Next();
      return *this;
    }
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return !item_.has_value(); }

   private:
    ObjectStream* stream_ = nullptr;
    std::optional<ObjectRef<T>> item_;
  };
  Iterator begin() { return Iterator(*this); }
  std::default_sentinel_t end() const { return {}; }

 private:
  StreamReader reader_;
};

// The other end: what an Emitter of a call that runs here writes to.
class StreamWriter final : public ItemSink {
 public:
  // `ahead` of 0: the call is no stream.
  StreamWriter(Client& client, TaskId call, std::uint32_t ahead)
      : client_(client), call_(call), ahead_(ahead) {}

  void Emit(std::size_t bytes, FunctionRef<void(std::span<std::byte>)> fill,
            std::span<const ObjectHandle> references) override;

 private:
  void AwaitReader();

  Client& client_;
  const TaskId call_;
  const std::uint32_t ahead_;
  ObjectHandle gate_;       // Ready while the reader is not too far behind.
  std::uint64_t next_ = 0;  // Item.
  std::uint64_t read_ = 0;  // Items that the reader has taken, as far as this end knows.
};

// ---- Between the two ends and the node.

inline constexpr std::uint64_t kStreamItemsMax = 0xffff'fff0;
inline ObjectId StreamEnd(TaskId call) { return ResultOf(call, 0); }
inline ObjectId StreamItem(TaskId call, std::uint64_t index) {
  return ResultOf(call, static_cast<std::uint32_t>(index + 1));
}
// Its value is the number of items that were taken.
inline ObjectId StreamGate(TaskId call) { return ResultOf(call, 0xffff'ffff); }

}  // namespace menger
