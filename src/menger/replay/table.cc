#include "menger/replay/table.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "menger/base/error.h"
#include "menger/replay/sample.h"
#include "menger/replay/table_state.h"

namespace menger {
namespace {

// Waits are cut into pieces of this length, which no clock arithmetic overflows.
constexpr std::chrono::nanoseconds kWaitMax = std::chrono::hours(1);

// A batch is read through three levels of indirection (item, slices, chunk); each is fetched this
// many items before it is needed by the next.
constexpr std::size_t kAhead = 8;

}  // namespace

// ---- Items come and go

// False, with nothing inserted, while the limiter or the journal forbids it or the remover finds
// nothing that it may remove.
bool Table::State::TryInsert(const ItemDraft& draft, ItemKey& key) {
  if (changes != nullptr && !changes->gate().open()) return false;
  if (!limiter.CanInsert(1)) return false;
  while (items.size() >= options.items_max) {
    if (!Evict()) return false;
  }
  // Its chunks first, so that eviction gives back none that it shares; selectors last, so that it
  // is not removed itself.
  const auto number = static_cast<std::uint64_t>(limiter.inserts() + 1);
  const std::uint32_t slot = items.Insert(number, draft.slices, draft.slice_counts);
  while (items.bytes() > options.bytes_max) {
    if (Evict()) continue;
    items.Erase(slot);
    return false;
  }
  items[slot].priority = draft.priority;
  items[slot].versions = draft.versions;
  sampler->Insert(slot, number, draft.priority);
  remover->Insert(slot, number, draft.priority);
  limiter.Inserted(1);
  Changed(slot);
  changed = true;
  key = {.number = number, .slot = slot};
  return true;
}

bool Table::State::Evict() {
  if (!remover->CanSelect()) return false;
  Remove(remover->Select(remover_random).slot);
  ++evicted;
  return true;
}

void Table::State::Remove(std::uint32_t slot) {
  sampler->Erase(slot);
  remover->Erase(slot);
  items.Erase(slot);
  limiter.Deleted(1);
  Changed(slot);
  changed = true;
}

// ---- Draws

// Up to `count` items, fewer where the table runs out of them.
void Table::State::Draw(const SampleRequest& request, int count, Sample& sample) {
  if (options.times_sampled_max > 0) return DrawOneByOne(request, count, sample);
  const auto wanted = static_cast<std::size_t>(count);
  if (selections.size() < wanted) selections.resize(wanted);
  const std::span<Selection> drawn(selections.data(), wanted);
  sampler->SelectMany(sampler_random, drawn);
  bool some_too_old = false;
  for (std::size_t i = 0; i < wanted + 3 * kAhead; ++i) {
    if (i < wanted) items.PrefetchItem(drawn[i].slot);
    if (i >= kAhead && i - kAhead < wanted) items.PrefetchSlices(drawn[i - kAhead].slot);
    if (i >= 2 * kAhead && i - 2 * kAhead < wanted) items.PrefetchChunk(drawn[i - 2 * kAhead].slot);
    if (i < 3 * kAhead) continue;
    const Selection& selection = drawn[i - 3 * kAhead];
    const bool too_old = TooOld(items[selection.slot], request);
    some_too_old |= too_old;
    if (!too_old) Give(selection, sample);
  }
  if (!some_too_old) return;
  for (const Selection& selection : drawn) {
    const Item& item = items[selection.slot];
    if (item.number == 0 || !TooOld(item, request)) continue;  // Gone if it was drawn twice.
    Remove(selection.slot);
    ++dropped_stale;
  }
}

// As Draw, where each draw may remove what it drew before the next one.
void Table::State::DrawOneByOne(const SampleRequest& request, int count, Sample& sample) {
  while (count > 0 && sampler->CanSelect()) {
    const Selection selection = sampler->Select(sampler_random);
    const Item& item = items[selection.slot];
    if (TooOld(item, request)) {
      Remove(selection.slot);
      ++dropped_stale;
      continue;
    }
    Give(selection, sample);
    --count;
    if (item.times_sampled >= static_cast<std::uint32_t>(options.times_sampled_max)) {
      Remove(selection.slot);
    }
  }
}

void Table::State::Give(const Selection& selection, Sample& sample) {
  Item& item = items[selection.slot];
  ++item.times_sampled;
  limiter.Sampled(1);
  if (options.times_sampled_max > 0) Changed(selection.slot);
  changed = true;
  sample.Add({.key = {.number = item.number, .slot = selection.slot},
              .probability = selection.probability,
              .priority = item.priority,
              .times_sampled = item.times_sampled,
              .versions = item.versions},
             items.slices(selection.slot), items.slice_counts(selection.slot));
}

// ---- Waits

// Whether `ready` became true before the deadline. Throws Cancelled once the table is closed.
template <typename Ready>
bool Table::State::Await(std::unique_lock<std::mutex>& lock, std::condition_variable& event,
                         int& waiting, const Deadline& deadline, Ready ready) {
  bool is_ready = !closed && ready();
  ++waiting;
  while (!is_ready && !closed) {
    Wake();  // What this call has done so far may be what another waits for.
    const std::chrono::nanoseconds remaining = deadline.remaining();
    if (remaining.count() == 0) break;
    event.wait_for(lock, std::min(remaining, kWaitMax));
    is_ready = !closed && ready();
  }
  --waiting;
  if (closed) throw Cancelled("table '{}' is closed", options.name);
  return is_ready;
}

void Table::State::Wake() {
  if (!changed) return;
  changed = false;
  if (inserters_waiting > 0 && limiter.CanInsert(1)) may_insert.notify_all();
  if (samplers_waiting > 0 && CanSample(samples_wanted)) may_sample.notify_all();
}

std::string Table::State::WhyNoInsert() const {
  if (!limiter.CanInsert(1)) return limiter.WhyNoInsert(1);
  if (changes != nullptr && !changes->gate().open()) return changes->gate().WhyShut();
  return fmt::format(
      "the table is full, and the priorities of all {} items are 0 to its remover {}", items.size(),
      ToString(options.remover));
}

std::string Table::State::WhyNoSample(std::int64_t count) const {
  if (!limiter.CanSample(count)) return limiter.WhyNoSample(count);
  return fmt::format("the priorities of all {} items are 0 to its sampler {}", items.size(),
                     ToString(options.sampler));
}

// ---- The interface

Table::Table(const TableOptions& options, ChunkStore& chunks) {
  options.Check();
  state_ = std::make_unique<State>(options, chunks);
}

Table::~Table() = default;

const TableOptions& Table::options() const { return state_->options; }

void Table::Insert(std::span<const ItemDraft> drafts, const Deadline& deadline,
                   std::vector<ItemKey>* keys) {
  State& state = *state_;
  const auto name = [&](std::size_t i) {
    return fmt::format("table '{}': item {} of {}", state.options.name, i + 1, drafts.size());
  };
  const std::uint32_t chunks_end = state.chunks.chunks_end();
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    try {
      state.checker.Check(drafts[i], chunks_end);
    } catch (const Error& error) {
      throw WithContext(error, name(i));
    }
  }

  std::unique_lock lock(state.mutex);
  for (std::size_t i = 0; i < drafts.size(); ++i) {
    ItemKey key;
    const auto insert = [&] { return state.JournalFailed() || state.TryInsert(drafts[i], key); };
    if (!state.Await(lock, state.may_insert, state.inserters_waiting, deadline, insert)) {
      throw DeadlineExceeded("{} could not be inserted in time: {}", name(i), state.WhyNoInsert());
    }
    if (key.number == 0) {
      throw Unavailable("{} is refused: the journal has failed, so it could be lost: {}", name(i),
                        state.changes->gate().why());
    }
    if (keys != nullptr) keys->push_back(key);
  }
  state.Wake();
}

void Table::SampleInto(const SampleRequest& request, Sample& sample) {
  State& state = *state_;
  if (request.count < 1 || request.count > kSampleItemsMax) {
    throw InvalidArgument("table '{}': {} items were asked for; it must be 1 to {}",
                          state.options.name, request.count, kSampleItemsMax);
  }
  const double samples_max = state.options.rate_limiter.SamplesMax();
  if (request.count > samples_max) {
    throw InvalidArgument(
        "table '{}': {} items were asked for at once, but its rate limiter never allows more than "
        "{}: ask for fewer, or let max_diff - min_diff be larger",
        state.options.name, request.count, samples_max);
  }
  sample.Release();

  std::unique_lock lock(state.mutex);
  while (sample.size() < request.count) {
    const int wanted = request.count - sample.size();
    state.samples_wanted =
        state.samplers_waiting > 0 ? std::min<std::int64_t>(state.samples_wanted, wanted) : wanted;
    const auto ready = [&] { return state.CanSample(wanted); };
    if (!state.Await(lock, state.may_sample, state.samplers_waiting, request.deadline, ready)) {
      if (sample.size() > 0) break;
      throw DeadlineExceeded("table '{}': {} items could not be sampled in time: {}",
                             state.options.name, wanted, state.WhyNoSample(wanted));
    }
    if (sample.size() == 0) {
      sample.Begin(state.chunks, state.options.items, state.items.size());
    }
    state.Draw(request, wanted, sample);
  }
  state.Wake();
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
  const std::lock_guard lock(state.mutex);
  state.slots.clear();
  state.priorities.clear();
  for (const PriorityUpdate& update : updates) {
    if (!state.items.Has(update.key)) continue;
    state.items[update.key.slot].priority = update.priority;
    state.slots.push_back(update.key.slot);
    state.priorities.push_back(update.priority);
    state.Changed(update.key.slot);
  }
  state.sampler->UpdateMany(state.slots, state.priorities);
  state.remover->UpdateMany(state.slots, state.priorities);
  state.changed = true;
  const auto found = static_cast<std::int64_t>(state.slots.size());
  const std::int64_t stale = std::ssize(updates) - found;
  state.stale_keys += stale;
  state.Wake();
  return {.found = found, .stale = stale};
}

Found Table::Delete(std::span<const ItemKey> keys) {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  Found result;
  for (const ItemKey& key : keys) {
    const bool found = state.items.Has(key);
    if (found) state.Remove(key.slot);
    ++(found ? result.found : result.stale);
  }
  state.stale_keys += result.stale;
  state.Wake();
  return result;
}

void Table::ReplaceChunks(std::span<const ItemKey> keys, std::span<const ChunkTwin> twins) {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  for (const ItemKey& key : keys) {
    // A journal must know: as the old chunks the items may be more than the table has room for.
    if (state.items.Has(key) && state.items.Replace(key.slot, twins)) state.Changed(key.slot);
  }
}

TableInfo Table::info() const {
  const State& state = *state_;
  const std::lock_guard lock(state.mutex);
  return {.items = state.items.size(),
          .bytes = state.items.bytes(),
          .metadata_bytes = state.items.slots() * state.options.ItemBytes(),
          .inserts = state.limiter.inserts(),
          .samples = state.limiter.samples(),
          .deletes = state.limiter.deletes(),
          .evicted = state.evicted,
          .dropped_stale = state.dropped_stale,
          .stale_keys = state.stale_keys};
}

void Table::Close() {
  State& state = *state_;
  const std::lock_guard lock(state.mutex);
  state.closed = true;
  state.may_insert.notify_all();
  state.may_sample.notify_all();
}

}  // namespace menger
