#include <algorithm>

#include "menger/replay/library/interface.h"

namespace menger {
namespace {

menger_replay_client* Connect(const char* socket, std::int64_t wait, std::int64_t patience) {
  CheckNotNull(socket, "socket");
  return new menger_replay_client{std::make_shared<ServedReplay>(ServedReplayOptions{
      .socket = socket,
      .patience = std::chrono::nanoseconds(patience),
      .start_patience = std::chrono::nanoseconds(std::max<std::int64_t>(wait, 0))})};
}

void CheckTable(const ServedReplay& replay, std::int32_t table) {
  if (table >= 0 && table < replay.tables()) return;
  throw InvalidArgument("table {} of {}", table, replay.tables());
}

}  // namespace
}  // namespace menger

menger_replay_client* menger_replay_client_new(const char* socket, std::int64_t wait,
                                               std::int64_t patience) {
  return menger::Made([=] { return menger::Connect(socket, wait, patience); });
}

void menger_replay_client_delete(menger_replay_client* client) { delete client; }

std::int32_t menger_replay_client_info(menger_replay_client* client, char** text) {
  return menger::With(client, [text](menger_replay_client& self) {
    menger::CheckNotNull(text, "text");
    std::vector<const menger::TableOptions*> tables;
    for (int i = 0; i < self.replay->tables(); ++i) tables.push_back(&self.replay->table(i));
    *text = menger::NewText(menger::InfoText(tables, self.replay->server()));
  });
}

std::int32_t menger_replay_client_update(menger_replay_client* client, std::int32_t table,
                                         const std::uint64_t* keys, const double* priorities,
                                         std::uint64_t count, std::uint64_t* found) {
  return menger::With(client, [=](menger_replay_client& self) {
    menger::CheckTable(*self.replay, table);
    std::vector<menger::PriorityUpdate> updates;
    for (std::uint64_t i = 0; i < count; ++i) {
      updates.push_back({.key = menger::UnpackKey(keys[i]), .priority = priorities[i]});
    }
    const menger::Found result = self.replay->UpdatePriorities(table, updates);
    if (found != nullptr) *found = static_cast<std::uint64_t>(result.found);
  });
}

std::int32_t menger_replay_client_delete_items(menger_replay_client* client, std::int32_t table,
                                               const std::uint64_t* keys, std::uint64_t count,
                                               std::uint64_t* found) {
  return menger::With(client, [=](menger_replay_client& self) {
    menger::CheckTable(*self.replay, table);
    std::vector<menger::ItemKey> items;
    for (std::uint64_t i = 0; i < count; ++i) items.push_back(menger::UnpackKey(keys[i]));
    const menger::Found result = self.replay->Delete(table, items);
    if (found != nullptr) *found = static_cast<std::uint64_t>(result.found);
  });
}

std::int32_t menger_replay_client_reset(menger_replay_client* client, std::int32_t table) {
  return menger::With(client, [table](menger_replay_client& self) {
    menger::CheckTable(*self.replay, table);
    self.replay->Reset(table);
  });
}

std::int32_t menger_replay_client_checkpoint(menger_replay_client* client, std::int64_t wait) {
  return menger::With(client, [wait](menger_replay_client& self) {
    self.replay->Checkpoint(menger::Within(wait));
  });
}
