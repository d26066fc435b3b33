// What checkpoints and journals copy of a Table, and the way back.
#include "menger/replay/table_content.h"

#include <algorithm>
#include <utility>

#include "menger/base/error.h"
#include "menger/replay/table_state.h"

namespace menger {

// ---- Checkpoints

// A million items take tens of milliseconds to touch: while nobody waits.
void Table::ReserveFor(TableContent& content) const {
  const State& state = *state_;
  PoolSizes sizes;
  std::size_t sampler_order = 0;
  std::size_t remover_order = 0;
  std::size_t streams = 0;
  {
    const MutexLock lock(state.mutex);
    sizes = state.items.sizes();
    sampler_order = state.sampler->order().size();
    remover_order = state.remover->order().size();
    streams = state.streams.size();
  }
  const std::size_t growth = sizes.items / 16 + 1024;
  sizes.ReserveIn(content.pool, growth, state.options.items.columns.size());
  content.sampler_order.resize(sampler_order + growth);
  content.remover_order.resize(remover_order + growth);
  content.streams.resize(streams + streams / 16);
}

std::unique_lock<std::mutex> Table::Lock() const {
  return std::unique_lock(state_->mutex.native());
}

TableCounts Table::State::Counts() const {
  return {.limiter = limiter.counts(),
          .evicted = evicted,
          .dropped_stale = dropped_stale,
          .stale_keys = stale_keys,
          .repeated = repeated,
          .priority_max = priority_max,
          .life = life,
          .sampler_random = sampler_random.Save(),
          .remover_random = remover_random.Save()};
}

void Table::CopyTo(TableContent& content, std::vector<ChunkId>& held) const {
  const State& state = *state_;
  state.mutex.AssertHeld();
  content.counts = state.Counts();
  content.limiter = state.options.rate_limiter;
  state.items.CopyTo(content.pool);
  const auto copy = [](std::span<const std::uint32_t> from, std::vector<std::uint32_t>& to) {
    to.assign(from.begin(), from.end());
  };
  copy(state.sampler->order(), content.sampler_order);
  copy(state.remover->order(), content.remover_order);
  state.streams.CopyTo(content.streams);
  state.items.HoldChunks(held);
}

// Where each item is to be sampled so and so often, d is what they still have to give.
void Table::State::RestoreLimiter(const TableContent& content) {
  limiter.Restore(content.counts.limiter, content.limiter);
  if (content.limiter == options.rate_limiter || !keeps_unsampled) return;
  double left = 0;
  for (const Item& item : content.pool.items) {
    if (item.number != 0) left += SamplesLeft(item);
  }
  limiter.MoveTo(left);
}

void Table::BeginLife(std::uint64_t life) {
  State& state = *state_;
  const MutexLock lock(state.mutex);
  state.life = std::max(state.life, static_cast<std::uint32_t>(life));
}

void Table::Restore(const TableContent& content) {
  State& state = *state_;
  const MutexLock lock(state.mutex);
  state.items.Restore(content.pool);
  std::vector<std::uint32_t> slots;
  for (std::uint32_t slot = 0; slot < content.pool.items.size(); ++slot) {
    if (content.pool.items[slot].number != 0) slots.push_back(slot);
  }
  std::ranges::sort(slots, {},
                    [items = &state.items](std::uint32_t slot) { return (*items)[slot].number; });
  for (const std::uint32_t slot : slots) {
    const Item& item = state.items[slot];
    state.sampler->Insert(slot, item.number, item.priority);
    state.remover->Insert(slot, item.number, item.priority);
  }
  state.sampler->RestoreOrder(content.sampler_order);
  state.remover->RestoreOrder(content.remover_order);
  const TableCounts& counts = content.counts;
  state.RestoreLimiter(content);
  state.evicted = counts.evicted;
  state.dropped_stale = counts.dropped_stale;
  state.stale_keys = counts.stale_keys;
  state.repeated = counts.repeated;
  state.streams.Restore(content.streams);
  state.priority_max = counts.priority_max;
  state.life = static_cast<std::uint32_t>(counts.life);
  state.sampler_random.Restore(counts.sampler_random);
  state.remover_random.Restore(counts.remover_random);
  while (state.items.size() > state.options.items_max ||
         state.items.bytes() > state.options.bytes_max) {
    if (state.Evict()) continue;
    throw FailedPrecondition(
        "table '{}': the checkpoint has {} items in {} bytes, more than items_max = {} and "
        "bytes_max = {} allow, and nothing of it may be evicted: {}",
        state.options.name, state.items.size(), state.items.bytes(), state.options.items_max,
        state.options.bytes_max, state.WhyNoInsert());
  }
  state.changed = true;
  state.Wake();
}

// ---- Journals

void Table::Watch(TableChanges* changes) {
  State& state = *state_;
  const MutexLock lock(state.mutex);
  state.changes = changes;
  state.streams.Watch(changes != nullptr);
  if (changes == nullptr) return;
  // What was evicted when the store was loaded is in no journal before.
  for (const std::uint32_t slot : state.items.free_slots()) state.Changed(slot);
}

void Table::CopyChanges(TableDelta& delta) {
  State& state = *state_;
  state.mutex.AssertHeld();
  delta.counts = state.Counts();
  for (const std::uint32_t slot : state.changes->slots()) {
    delta.slots.push_back(slot);
    Item& item = delta.items.emplace_back(state.items[slot]);
    if (item.number == 0) item = {};
    const auto slices = state.items.slices(slot).first(item.slices_count);
    const auto slice_counts = state.items.slice_counts(slot);
    item.slices_begin = static_cast<std::uint32_t>(delta.slices.size());
    delta.slices.insert(delta.slices.end(), slices.begin(), slices.end());
    delta.slice_counts.insert(delta.slice_counts.end(), slice_counts.begin(), slice_counts.end());
  }
  state.changes->Clear();
  state.streams.TakeChanges(delta.streams);
  delta.streams_left = state.streams.size();
}

void Table::WakeInserters() {
  State& state = *state_;
  const MutexLock lock(state.mutex);
  state.inserters.CallFirst();
}

}  // namespace menger
