#include "menger/replay/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "menger/base/error.h"
#include "menger/replay/sample.h"
#include "menger/replay/table_state.h"

namespace menger {
namespace {

// A batch is read through three levels of indirection (item, slices, chunk); each is fetched this
// many items before it is needed by the next.
constexpr std::size_t kAhead = 8;

// So many items are drawn, removed or updated while everybody else waits: a few milliseconds.
constexpr int kPiece = 16'384;

// Between two pieces the mutex is free for longer than it takes a sleeping thread to come.
constexpr std::chrono::microseconds kPause{100};

void LetOthers(MutexLock& lock) {
  lock.native().unlock();
  std::this_thread::sleep_for(kPause);
  lock.native().lock();
}

}  // namespace

// A call's turn among those that insert, or that sample. When it goes, the next one is called.
// Always under the table's mutex, which it knows by another name than who holds it.
class Table::CallTurn {
 public:
  CallTurn(State& state, TurnQueue& queue) : state_(state), queue_(queue), turn_(queue) {}
  CallTurn(const CallTurn&) = delete;
  CallTurn& operator=(const CallTurn&) = delete;
  ~CallTurn() MENGER_UNCHECKED_LOCKS {
    turn_.Leave();
    if (&queue_ == &state_.samplers) state_.samples_wanted = 1;  // Until the next one says.
    state_.changed = true;
    state_.Wake();
  }

  bool has_come() const { return turn_.has_come(); }

  // False at the deadline.
  bool Wait(MutexLock& lock, const Deadline& deadline) MENGER_UNCHECKED_LOCKS {
    turn_.Join();
    state_.Wake();  // What this call has done so far may be what another waits for.
    return turn_.Wait(lock.native(), deadline);
  }

  // Keeps the turn while others see to what is not sampled or inserted.
  void Pause(MutexLock& lock) MENGER_UNCHECKED_LOCKS {
    turn_.Join();
    state_.Wake();
    LetOthers(lock);
  }

 private:
  State& state_;
  const TurnQueue& queue_;
  TurnQueue::Turn turn_;
};

// ---- Items come and go

// False, with nothing inserted, while the limiter or the journal forbids it or nothing may be
// removed to make room.
bool Table::State::InsertOne(const ItemDraft& draft, ItemKey& key) {
  if (changes != nullptr && !changes->gate().open()) return false;
  if (!limiter.CanInsert(1)) {
    insert_refused = true;
    changed = true;  // Whoever samples may open it.
    return false;
  }
  while (items.size() >= options.items_max) {
    if (!Evict()) return false;
  }
  // Its chunks first, so that eviction gives back none that it shares; selectors last, so that it
  // is not removed itself.
  const auto number = static_cast<std::uint64_t>(limiter.counts().inserts + 1);
  const std::uint32_t slot = items.Insert(number, draft.slices, draft.slice_counts);
  while (items.bytes() > options.bytes_max) {
    if (Evict()) continue;
    items.Erase(slot);
    return false;
  }
  const double priority = draft.priority.value_or(priority_max);
  priority_max = std::max(priority_max, priority);
  items[slot].priority = priority;
  items[slot].versions = draft.versions;
  items[slot].life = life;
  sampler->Insert(slot, number, priority);
  remover->Insert(slot, number, priority);
  limiter.Inserted(1);
  Changed(slot);
  changed = true;
  key = {.number = number, .slot = slot, .life = life, .shard = options.shard};
  return true;
}

// The first drafts, up to one that cannot be taken now; how many they are. Throws Unavailable for
// that one once a journal has failed.
std::size_t Table::State::InsertWhatFits(std::span<const ItemDraft> drafts, std::uint64_t stream,
                                         std::vector<ItemKey>* keys) {
  std::size_t taken = 0;
  ItemKey key;
  while (taken < drafts.size() && !JournalFailed() && InsertOne(drafts[taken], key)) {
    if (keys != nullptr) keys->push_back(key);
    ++taken;
  }
  if (stream != 0 && taken > 0) streams.Advance(stream, drafts[taken - 1].sequence);
  if (taken < drafts.size() && JournalFailed()) {
    throw Unavailable(
        "table '{}': an item is refused: the journal has failed, so it could be lost: {}",
        options.name, changes->gate().why());
  }
  return taken;
}

bool Table::State::Evict() {
  if (keeps_unsampled || !remover->CanSelect()) return false;
  Remove(remover->Select(remover_random).slot);
  ++evicted;
  return true;
}

// How many samples the limiter still expects of an item that is sampled a bounded number of times.
double Table::State::SamplesLeft(const Item& item) const {
  if (options.times_sampled_max == 0) return 0;
  const double expected = std::min(options.rate_limiter.samples_per_insert,
                                   static_cast<double>(options.times_sampled_max));
  return std::max(0.0, expected - static_cast<double>(item.times_sampled));
}

void Table::State::Remove(std::uint32_t slot) {
  limiter.Forgo(SamplesLeft(items[slot]));
  sampler->Erase(slot);
  remover->Erase(slot);
  items.Erase(slot);
  limiter.Deleted(1);
  Changed(slot);
  changed = true;
}

// ---- Draws

// Until the sample is full, the limiter forbids it, nothing is left to choose, or a piece was done.
void Table::State::DrawWhatIsAllowed(const SampleRequest& request, Sample& sample) {
  for (int drawn = 0; drawn < kPiece && CanSample(1) && sample.size() < request.count;) {
    if (sample.size() == 0) sample.Begin(chunks, options.items, items.size());
    const int count = std::min(request.count - sample.size(), kPiece - drawn);
    drawn += count;
    if (options.times_sampled_max > 0) {
      DrawOneByOne(request, count, sample);
    } else {
      DrawMany(request, static_cast<int>(limiter.SamplesAllowed(count)), sample);
    }
  }
  insert_refused = false;
}

// `count` items, which the limiter allows, or fewer where some are too old: that may forbid the
// rest.
void Table::State::DrawMany(const SampleRequest& request, int count, Sample& sample) {
  const auto wanted = static_cast<std::size_t>(count);
  if (selections.size() < wanted) selections.resize(wanted);
  const std::span<Selection> drawn(selections.data(), wanted);
  sampler->SelectMany(sampler_random, drawn);
  const std::span<const Selection> given =
      request.staleness_max ? DropStale(request, drawn) : std::span<const Selection>(drawn);
  for (std::size_t i = 0; i < given.size() + 3 * kAhead; ++i) {
    const auto at = [&](std::size_t behind) { return i >= behind && i - behind < given.size(); };
    if (at(0)) items.PrefetchItem(given[i].slot);
    if (at(kAhead)) items.PrefetchSlices(given[i - kAhead].slot);
    if (at(2 * kAhead)) items.PrefetchChunk(given[i - 2 * kAhead].slot);
    if (at(3 * kAhead)) Give(given[i - 3 * kAhead], sample);
  }
}

// Removes the items that are too old; returns the other selections, as many as may be given then.
std::span<const Selection> Table::State::DropStale(const SampleRequest& request,
                                                   std::span<Selection> drawn) {
  std::size_t fresh = 0;
  slots.clear();
  for (std::size_t i = 0; i < drawn.size() + kAhead; ++i) {
    if (i < drawn.size()) items.PrefetchItem(drawn[i].slot);
    if (i < kAhead) continue;
    const Selection& selection = drawn[i - kAhead];
    if (TooOld(items[selection.slot], request)) {
      slots.push_back(selection.slot);
    } else {
      drawn[fresh++] = selection;
    }
  }
  std::ranges::sort(slots);  // One may have been drawn twice.
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  for (const std::uint32_t slot : slots) Remove(slot);
  dropped_stale += std::ssize(slots);
  const std::int64_t allowed = limiter.SamplesAllowed(static_cast<std::int64_t>(fresh));
  return drawn.first(static_cast<std::size_t>(allowed));
}

// Where each draw may remove what it drew before the next one. Items that are removed count, too.
void Table::State::DrawOneByOne(const SampleRequest& request, int count, Sample& sample) {
  for (; count > 0 && CanSample(1); --count) {
    const Selection selection = sampler->Select(sampler_random);
    const Item& item = items[selection.slot];
    if (TooOld(item, request)) {
      Remove(selection.slot);
      ++dropped_stale;
      continue;
    }
    Give(selection, sample);
    if (item.times_sampled >= static_cast<std::uint32_t>(options.times_sampled_max)) {
      Remove(selection.slot);
    }
  }
}

void Table::State::Give(const Selection& selection, Sample& sample) {
  Item& item = items[selection.slot];
  if (++item.times_sampled == 1) ++items_sampled;
  limiter.Sampled(1);
  if (options.times_sampled_max > 0) Changed(selection.slot);
  changed = true;
  sample.Add({.key = {.number = item.number,
                      .slot = selection.slot,
                      .life = item.life,
                      .shard = options.shard},
              .probability = selection.probability,
              .priority = item.priority,
              .times_sampled = item.times_sampled,
              .versions = item.versions},
             items.slices(selection.slot), items.slice_counts(selection.slot));
}

// ---- Waits

void Table::State::CheckOpen() const {
  if (closed) throw Cancelled("table '{}' is closed", options.name);
}

// A sampler is called when it can be given all that it still wants, or what it can be given may be
// what an insert waits for.
void Table::State::Wake() {
  if (!changed) return;
  changed = false;
  if (!inserters.empty() && (JournalFailed() || limiter.CanInsert(1))) inserters.CallFirst();
  if (samplers.empty()) return;
  const bool holds_inserts = insert_refused || (!inserters.empty() && !limiter.CanInsert(1));
  if (CanSample(holds_inserts ? 1 : samples_wanted)) samplers.CallFirst();
}

std::string Table::State::WhyNoInsert() const {
  if (!limiter.CanInsert(1)) return limiter.WhyNoInsert(1);
  if (changes != nullptr && !changes->gate().open()) return changes->gate().WhyShut();
  if (keeps_unsampled) {
    return fmt::format(
        "the table is full ({} items of items_max {}, {} bytes of bytes_max {}), and none of them "
        "goes before it was sampled {} time{}",
        items.size(), options.items_max, items.bytes(), options.bytes_max,
        options.times_sampled_max, options.times_sampled_max == 1 ? "" : "s");
  }
  if (!remover->CanSelect()) {
    return fmt::format(
        "the table is full, and the priorities of all {} items are 0 to its remover {}",
        items.size(), ToString(options.remover));
  }
  return "calls that came before it are being served";
}

std::string Table::State::WhyNoSample() const {
  if (!limiter.CanSample(1)) return limiter.WhyNoSample(1);
  if (!sampler->CanSelect()) {
    return fmt::format("the priorities of all {} items are 0 to its sampler {}", items.size(),
                       ToString(options.sampler));
  }
  return "calls that came before it are being served";
}

// ---- The interface

Table::Table(const TableOptions& options, ChunkStore& chunks) {
  options.Check();
  state_ = std::make_unique<State>(options, chunks);
}

Table::~Table() = default;

const TableOptions& Table::options() const { return state_->options; }

namespace {

std::string Numbered(const std::string& table, std::size_t item, std::size_t items) {
  return fmt::format("table '{}': item {} of {}", table, item + 1, items);
}

}  // namespace

void Table::CheckDrafts(std::span<const ItemDraft> drafts, std::uint64_t stream) const {
  const State& state = *state_;
  const std::uint32_t chunks_end = state.chunks.chunks_end();
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    try {
      state.checker.Check(drafts[i], chunks_end);
      if (stream != 0) CheckSequence(drafts[i], i == 0 ? 0 : drafts[i - 1].sequence);
    } catch (const Error& error) {
      throw WithContext(error, Numbered(state.options.name, i, drafts.size()));
    }
  }
}

void Table::Insert(std::span<const ItemDraft> drafts, const Deadline& deadline,
                   std::vector<ItemKey>* keys, std::uint64_t stream) {
  CheckDrafts(drafts, stream);
  State& state = *state_;
  MutexLock lock(state.mutex);
  CallTurn turn(state, state.inserters);
  for (std::size_t taken = 0;;) {
    state.CheckOpen();
    taken += state.PassOver(drafts.subspan(taken), stream, keys);
    if (turn.has_come()) taken += state.InsertWhatFits(drafts.subspan(taken), stream, keys);
    if (taken == drafts.size()) return;
    if (turn.Wait(lock, deadline)) continue;
    throw DeadlineExceeded("{} could not be inserted in time: {}",
                           Numbered(state.options.name, taken, drafts.size()), state.WhyNoInsert());
  }
}

std::int64_t Table::TryInsert(std::span<const ItemDraft> drafts, std::vector<ItemKey>* keys,
                              std::uint64_t stream) {
  CheckDrafts(drafts, stream);
  State& state = *state_;
  const MutexLock lock(state.mutex);
  const CallTurn turn(state, state.inserters);
  state.CheckOpen();
  std::size_t taken = state.PassOver(drafts, stream, keys);
  if (turn.has_come()) taken += state.InsertWhatFits(drafts.subspan(taken), stream, keys);
  return static_cast<std::int64_t>(taken);
}

void Table::CheckRequest(const SampleRequest& request) const {
  if (request.count >= 1 && request.count <= kSampleItemsMax) return;
  throw InvalidArgument("table '{}': {} items were asked for; it must be 1 to {}", options().name,
                        request.count, kSampleItemsMax);
}

void Table::SampleInto(const SampleRequest& request, Sample& sample) {
  CheckRequest(request);
  State& state = *state_;
  sample.Release();
  MutexLock lock(state.mutex);
  CallTurn turn(state, state.samplers);
  for (bool expired = false;;) {
    state.CheckOpen();
    // Of a whole batch, all at first; what was too old is drawn again one by one.
    const int least = request.whole && sample.size() == 0 ? request.count : 1;
    if (turn.has_come()) {
      if (state.CanSample(least)) state.DrawWhatIsAllowed(request, sample);
      if (sample.size() == request.count) return;
      state.samples_wanted = request.count - sample.size();
    }
    if (expired && sample.size() > 0) return;
    if (expired) {
      throw DeadlineExceeded("table '{}': {} items could not be sampled in time: {}",
                             state.options.name, request.count, state.WhyNoSample());
    }
    if (turn.has_come() && state.CanSample(least)) {
      turn.Pause(lock);
      expired = request.deadline.expired();
    } else {
      expired = !turn.Wait(lock, request.deadline);
    }
  }
}

int Table::TrySample(const SampleRequest& request, Sample& sample) {
  CheckRequest(request);
  State& state = *state_;
  sample.Release();
  MutexLock lock(state.mutex);
  CallTurn turn(state, state.samplers);
  state.CheckOpen();
  while (turn.has_come() && sample.size() < request.count &&
         state.CanSample(request.whole && sample.size() == 0 ? request.count : 1)) {
    if (sample.size() > 0) turn.Pause(lock);
    state.CheckOpen();
    state.DrawWhatIsAllowed(request, sample);
  }
  return sample.size();
}

Found Table::UpdatePriorities(std::span<const PriorityUpdate> updates) {
  State& state = *state_;
  for (const PriorityUpdate& update : updates) {
    try {
      CheckPriority(update.priority);
    } catch (const Error& error) {
      throw WithContext(error, fmt::format("table '{}': update of item {}", state.options.name,
                                           update.key.number));
    }
  }
  Found result;
  MutexLock lock(state.mutex);
  for (std::size_t begin = 0; begin < updates.size(); begin += kPiece) {
    if (begin > 0) LetOthers(lock);
    const auto piece =
        updates.subspan(begin, std::min<std::size_t>(kPiece, updates.size() - begin));
    const std::int64_t found = state.Update(piece);
    result.found += found;
    result.stale += std::ssize(piece) - found;
  }
  return result;
}

// Returns how many of the items there were.
std::int64_t Table::State::Update(std::span<const PriorityUpdate> updates) {
  slots.clear();
  priorities.clear();
  for (const PriorityUpdate& update : updates) {
    if (!Has(update.key)) continue;
    items[update.key.slot].priority = update.priority;
    slots.push_back(update.key.slot);
    priorities.push_back(update.priority);
    priority_max = std::max(priority_max, update.priority);
    Changed(update.key.slot);
  }
  sampler->UpdateMany(slots, priorities);
  remover->UpdateMany(slots, priorities);
  const std::int64_t found = std::ssize(slots);
  stale_keys += std::ssize(updates) - found;
  changed = true;
  Wake();
  return found;
}

Found Table::Delete(std::span<const ItemKey> keys) {
  State& state = *state_;
  Found result;
  MutexLock lock(state.mutex);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (i > 0 && i % kPiece == 0) {
      state.Wake();
      LetOthers(lock);
    }
    const bool found = state.Has(keys[i]);
    if (found) state.Remove(keys[i].slot);
    ++(found ? result.found : result.stale);
    state.stale_keys += found ? 0 : 1;
  }
  state.Wake();
  return result;
}

void Table::ReplaceChunks(std::span<const ItemKey> keys, std::span<const ChunkTwin> twins) {
  State& state = *state_;
  const MutexLock lock(state.mutex);
  for (const ItemKey& key : keys) {
    // A journal must know: as the old chunks the items may be more than the table has room for.
    if (state.Has(key) && state.items.Replace(key.slot, twins)) state.Changed(key.slot);
  }
}

TableInfo Table::info() const {
  const State& state = *state_;
  const MutexLock lock(state.mutex);
  return {.items = state.items.size(),
          .bytes = state.items.bytes(),
          .metadata_bytes = state.items.slots() * state.options.ItemBytes() + state.streams.bytes(),
          .inserts = state.limiter.counts().inserts,
          .samples = state.limiter.counts().samples,
          .deletes = state.limiter.counts().deletes,
          .evicted = state.evicted,
          .dropped_stale = state.dropped_stale,
          .stale_keys = state.stale_keys,
          .repeated = state.repeated,
          .items_sampled = state.items_sampled,
          .inserts_waiting = state.inserters.size(),
          .samples_waiting = state.samplers.size()};
}

void Table::Close() {
  State& state = *state_;
  const MutexLock lock(state.mutex);
  state.closed = true;
  state.inserters.CallAll();
  state.samplers.CallAll();
}

}  // namespace menger
