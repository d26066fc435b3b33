// Would the runtime be as well off with others' parts? Its control store beside SQLite: puts, lives
// of keys, opening, bytes, and what each says of a damaged file. Its IdMap beside hash maps of
// others: alone, and in its place in the node's logic. store_and_map.sh builds it and runs it.
//
//   store_and_map [--parts store damage maps node] [--rounds 5] [--seconds .5] [--folder FOLDER]
//                 [--nodes node_IdMap.so node_LowBesideMap.so ...]
//
// In each round all take their turns; medians (lowest to highest) of all, and of the ratios to the
// first of the same round.

#include <dlfcn.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "../program.h"
#include "menger/base/clock.h"
#include "menger/runtime/control/embedded_store.h"
#include "menger/runtime/control/store_log.h"
#include "peer_maps.h"
#include "rows.h"
#include "sqlite_store.h"

namespace menger::bench {
namespace {

namespace fs = std::filesystem;
using Operation = StoreOperation;
using Records = std::map<std::string, std::string>;

constexpr StoreTable kTable = StoreTable::kObjects;
constexpr int kKeys = 100'000;      // Of a store that is opened,
constexpr int kDamagedKeys = 2000;  // and of one that is damaged.
constexpr int kDamages = 100;

struct Settings {
  std::vector<std::string> parts{"store", "damage", "maps", "node"};
  int rounds = 5;
  double seconds = .5;
  std::string folder = "store_and_map.folder";
  std::vector<std::string> nodes;
};

// ---- The store.

// Ours, called like the other: whoever calls waits.
class OwnStore {
 public:
  OwnStore(const std::string& folder, bool sync_each)
      : store_({.journal =
                    KeepInLog({.folder = folder,
                               .sync_every = std::chrono::milliseconds(sync_each ? 0 : 100)})}) {}
  void Apply(std::vector<Operation> batch) {
    for (const StoreResult& result : RunBatch(store_, std::move(batch), Soon())) {
      if (result.error) throw *result.error;
    }
  }
  std::optional<std::string> Get(StoreTable table, std::string key) {
    return RunBatch(store_, {Operation::Get(table, std::move(key))}, Soon())[0].record.value;
  }
  Records All(StoreTable table) {
    Records records;
    for (StoreRecord& record : ScanAll(store_, table, "", Soon())) {
      records[std::move(record.key)] = std::move(record.value);
    }
    return records;
  }

 private:
  static Deadline Soon() { return Deadline::After(std::chrono::seconds(60)); }
  EmbeddedStore store_;
};

// Where either lies: a folder that is made anew.
template <typename Store>
std::string Place(const fs::path& folder, bool anew = true) {
  if (anew) fs::remove_all(folder);
  fs::create_directories(folder);
  return std::is_same_v<Store, SqliteStore> ? folder / "records.db" : folder / "store";
}

double Megabytes(const fs::path& folder) {
  std::uintmax_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    std::error_code removed;
    if (entry.is_regular_file(removed)) bytes += entry.file_size(removed);
  }
  return static_cast<double>(bytes) * 1e-6;
}

template <typename Store>
double PutsPerSecond(const Settings& settings, bool sync_each, int batch_size) {
  Store store(Place<Store>(settings.folder), sync_each);
  std::int64_t count = 0;
  const Stopwatch watch;
  while (watch.seconds() < settings.seconds) {
    std::vector<Operation> batch;
    for (int i = 0; i < batch_size; ++i, ++count) {
      batch.push_back(Operation::Put(kTable, std::to_string(count % 1000), std::string(100, 'v')));
    }
    store.Apply(std::move(batch));
  }
  return static_cast<double>(count) / watch.seconds();
}

// Puts and deletes with ten alive; per second, or the most megabytes on the disk.
template <typename Store>
double Lives(const Settings& settings, int batch_size, bool bytes) {
  Store store(Place<Store>(settings.folder), false);
  double most = 0;
  std::int64_t lives = 0;
  std::vector<Operation> batch;
  const Stopwatch watch;
  while (watch.seconds() < settings.seconds) {
    for (int i = 0; i < batch_size; ++i, ++lives) {
      batch.push_back(Operation::Put(kTable, std::to_string(lives), std::string(100, 'v')));
      if (lives >= 10) batch.push_back(Operation::Delete(kTable, std::to_string(lives - 10)));
    }
    store.Apply(std::exchange(batch, {}));
    if (bytes) most = std::max(most, Megabytes(settings.folder));
  }
  return bytes ? most : static_cast<double>(lives) / watch.seconds();
}

std::string ValueOf(int key) { return fmt::format("{:0100}", key * 7919); }

// The keys in an order of their own, as ids come.
template <typename Store>
void Fill(Store& store, int keys) {
  std::vector<Operation> batch;
  for (int i = 0; i < keys; ++i) {
    const auto key = fmt::format("{:016x}", static_cast<std::uint64_t>(i) * 0x9E3779B97F4A7C15);
    batch.push_back(Operation::Put(kTable, key, ValueOf(i)));
    if (batch.size() == 256 || i + 1 == keys) store.Apply(std::exchange(batch, {}));
  }
}

template <typename Store>
double GetsPerSecond(const std::string& path) {
  Store store(path, false);
  constexpr int kGets = 50'000;
  const Stopwatch watch;
  for (std::uint64_t i = 0; i < kGets; ++i) {
    const std::uint64_t key = i * 7919 % kKeys;
    if (!store.Get(kTable, fmt::format("{:016x}", key * 0x9E3779B97F4A7C15)))
      throw Internal("gone");
  }
  return kGets / watch.seconds();
}

// Milliseconds until one record is known, or all.
template <typename Store>
double OpenMilliseconds(const std::string& path, bool all) {
  const Stopwatch watch;
  Store store(path, false);
  if (all && store.All(kTable).size() != kKeys) throw Internal("records are missing");
  if (!all) store.Get(kTable, fmt::format("{:016x}", 0));
  return watch.seconds() * 1e3;
}

void CompareStores(const Settings& settings) {
  const auto row = [&](const std::string& what, const Measurement& own, const Measurement& sqlite) {
    Row(what, settings.rounds, {own, sqlite});
  };
  Head({"", "EmbeddedStore", fmt::format("SQLite {}", sqlite3_libversion())});
  for (const bool sync_each : {true, false}) {
    for (const int batch : {1, 256}) {
      row(
          fmt::format("puts/s of 100 bytes, {} at a time, synced {}", batch,
                      sync_each ? "each" : "every 100 ms"),
          [&] { return PutsPerSecond<OwnStore>(settings, sync_each, batch); },
          [&] { return PutsPerSecond<SqliteStore>(settings, sync_each, batch); });
    }
  }
  for (const int batch : {1, 500}) {
    row(
        fmt::format("lives/s, ten alive, {} at a time", batch),
        [&] { return Lives<OwnStore>(settings, batch, false); },
        [&] { return Lives<SqliteStore>(settings, batch, false); });
  }
  row(
      "most MB on the disk meanwhile", [&] { return Lives<OwnStore>(settings, 500, true); },
      [&] { return Lives<SqliteStore>(settings, 500, true); });

  const std::string own = Place<OwnStore>(settings.folder + "/own");
  const std::string sqlite = Place<SqliteStore>(settings.folder + "/sqlite");

  {
    OwnStore store(own, false);
    Fill(store, kKeys);
    SqliteStore other(sqlite, false);
    Fill(other, kKeys);
  }
  row(
      fmt::format("MB of {} keys, closed", kKeys), [&] { return Megabytes(own); },
      [&] { return Megabytes(fs::path(sqlite).parent_path()); });
  row(
      "gets/s", [&] { return GetsPerSecond<OwnStore>(own); },
      [&] { return GetsPerSecond<SqliteStore>(sqlite); });
  row(
      "ms to open them and read one", [&] { return OpenMilliseconds<OwnStore>(own, false); },
      [&] { return OpenMilliseconds<SqliteStore>(sqlite, false); });
  row(
      "ms to open them and read all", [&] { return OpenMilliseconds<OwnStore>(own, true); },
      [&] { return OpenMilliseconds<SqliteStore>(sqlite, true); });
}

// ---- Damage.

// What became of a damaged store: how often, and the first text.
using Outcomes = std::map<std::string, std::pair<int, std::string>>;

template <typename Store>
void Look(const std::string& path, const std::vector<std::string>& order, const Records& before,
          Outcomes& outcomes) {
  const auto count = [&](const std::string& outcome, const std::string& text) {
    auto& [times, first] = outcomes[outcome];
    if (times++ == 0) first = text;
  };
  std::string text;
  try {
    Store store(path, false);
    text = "opened";
    const Records after = store.All(kTable);
    std::size_t wrong = 0;
    for (const auto& [key, value] : after) {
      const auto found = before.find(key);
      wrong += found == before.end() || found->second != value;
    }
    std::size_t first = 0;  // So many of the oldest are there.
    while (first < order.size() && after.contains(order[first])) ++first;
    std::string check;
    if constexpr (std::is_same_v<Store, SqliteStore>) check = store.IntegrityCheck();
    if (check == "ok")
      check = "; integrity_check: ok";
    else if (!check.empty())
      check = "; integrity_check finds it";
    text = fmt::format("{} of {} records, {} wrong", after.size(), before.size(), wrong);
    if (wrong > 0) return count("WRONG values, silently" + check, text);
    if (after.size() == before.size()) return count("all there, silently" + check, text);
    if (first == after.size()) return count("the newest gone, silently" + check, text);
    count("records between others gone, silently" + check, text);
  } catch (const std::exception& error) {
    count(text.empty() ? "refused" : "opened, error when read", error.what());
  }
}

// The largest file whose name ends so.
fs::path FileOf(const fs::path& folder, const std::string& ending) {
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.path().string().ends_with(ending) && entry.file_size() > 0) return entry.path();
  }
  throw Internal("no file *{} in {}", ending, folder.string());
}

// A store as it is once closed, or as a process leaves it that is killed; then a bit of it flipped
// in its middle half, or the file cut there, each time anew.
template <typename Store>
void DamageStore(const Settings& settings, const char* name, bool closed,
                 const std::string& ending) {
  const fs::path folder = settings.folder + "/whole";
  const fs::path killed = settings.folder + "/killed";
  const fs::path damaged = settings.folder + "/damaged";
  std::vector<std::string> order;
  Records before;
  {
    auto store = std::make_unique<Store>(Place<Store>(folder), true);
    Fill(*store, kDamagedKeys);
    for (int i = 0; i < kDamagedKeys; ++i) {
      order.push_back(fmt::format("{:016x}", static_cast<std::uint64_t>(i) * 0x9E3779B97F4A7C15));
    }
    before = store->All(kTable);
    if (closed) store.reset();
    fs::remove_all(killed);
    fs::copy(folder, killed, fs::copy_options::recursive);
  }
  std::mt19937_64 random(1);
  for (const bool cut : {false, true}) {
    Outcomes outcomes;
    for (int i = 0; i < kDamages; ++i) {
      fs::remove_all(damaged);
      fs::copy(killed, damaged, fs::copy_options::recursive);
      const fs::path file = FileOf(damaged, ending);
      const auto size = fs::file_size(file);
      const auto at = static_cast<std::streamoff>(size / 4 + random() % (size / 2));
      if (cut) {
        fs::resize_file(file, static_cast<std::uintmax_t>(at));
      } else {
        std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
        stream.seekg(at);
        const auto byte = static_cast<char>(stream.get() ^ (1 << random() % 8));
        stream.seekp(at);
        stream.put(byte);
      }
      Look<Store>(Place<Store>(damaged, false), order, before, outcomes);
    }
    for (const auto& [outcome, seen] : outcomes) {
      fmt::print("| {}, {} | {} | {} of {}: {} | {} |\n", name, closed ? "closed" : "killed",
                 cut ? "cut" : "a bit flipped", seen.first, kDamages, outcome, seen.second);
    }
  }
}

void CompareDamage(const Settings& settings) {
  Head({"file", "damage", "what happened", "for example"});
  for (const bool closed : {true, false}) {
    DamageStore<OwnStore>(settings, "EmbeddedStore's log", closed, ".log");
  }
  DamageStore<SqliteStore>(settings, "SQLite's database", true, ".db");
  DamageStore<SqliteStore>(settings, "SQLite's WAL", false, ".db-wal");
}

// ---- The map.

struct Thing {
  Id id;
  std::uint64_t value = 1;
  std::uint64_t more[13] = {};  // As long as an Object, about.
};

// Things by their ids, and the order in which to ask for them.
struct Things {
  explicit Things(std::size_t count) : things(2 * count), order(count) {
    std::mt19937_64 random(count);
    for (Thing& thing : things) thing.id = {random(), random()};
    for (std::size_t i = 0; i < count; ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
  }
  std::vector<Thing> things;  // The first half is in the map at first.
  std::vector<std::size_t> order;
};

volatile std::uint64_t sink;

enum class Deed { kHit, kMiss, kInsertErase };

template <typename Map>
double Nanoseconds(Things& things, Deed deed) {
  Map map;
  const std::size_t count = things.order.size();
  for (std::size_t i = 0; i < count; ++i) map.Insert(&things.things[i]);
  constexpr std::size_t kDeeds = 2'000'000;
  std::uint64_t sum = 0;
  std::size_t at = 0;
  std::size_t begin = 0;  // Of the half that is in the map: it goes round in kInsertErase.
  const CpuWatch watch;
  for (std::size_t i = 0; i < kDeeds; ++i, at = at + 1 == count ? 0 : at + 1) {
    if (deed == Deed::kHit) {
      sum += map.Find(things.things[things.order[at]].id)->value;
    } else if (deed == Deed::kMiss) {
      sum += map.Find(things.things[count + things.order[at]].id) == nullptr;
    } else {
      map.Insert(&things.things[(begin + count) % (2 * count)]);
      map.Erase(&things.things[begin]);
      begin = (begin + 1) % (2 * count);
    }
  }
  const auto nanoseconds = watch.nanoseconds();
  sink = sum;
  return nanoseconds / kDeeds;
}

std::vector<std::string> MapNames() {
  std::vector<std::string> names{"IdMap", "low half beside", "std::unordered_map"};
#if __has_include(<absl/container/flat_hash_map.h>)
  names.emplace_back("absl::flat_hash_map");
#endif
#if __has_include(<boost/unordered/unordered_flat_map.hpp>)
  names.emplace_back("boost::unordered_flat_map");
#endif
#if __has_include(<tsl/robin_map.h>)
  names.emplace_back("tsl::robin_map");
#endif
  return names;
}

void CompareMaps(const Settings& settings) {
  std::vector<std::string> head = MapNames();
  head.insert(head.begin(), "ns");
  Head(head);
  for (const std::size_t count : {1000, 100'000, 1'000'000}) {
    Things things(count);
    for (const auto& [deed, name] : {std::pair(Deed::kHit, "find, a hit"),
                                     {Deed::kMiss, "find, a miss"},
                                     {Deed::kInsertErase, "insert and erase"}}) {
      const auto of = [&, deed = deed]<typename Map>(Map*) -> Measurement {
        return [&things, deed] { return Nanoseconds<Map>(things, deed); };
      };
      std::vector<Measurement> sides{of(static_cast<IdMap<Thing>*>(nullptr)),
                                     of(static_cast<LowBesideMap<Thing>*>(nullptr)),
                                     of(static_cast<StdMap<Thing>*>(nullptr))};
#if __has_include(<absl/container/flat_hash_map.h>)
      sides.push_back(of(static_cast<AbslMap<Thing>*>(nullptr)));
#endif
#if __has_include(<boost/unordered/unordered_flat_map.hpp>)
      sides.push_back(of(static_cast<BoostMap<Thing>*>(nullptr)));
#endif
#if __has_include(<tsl/robin_map.h>)
      sides.push_back(of(static_cast<RobinMap<Thing>*>(nullptr)));
#endif
      Row(fmt::format("{}, {} in it", name, count), settings.rounds, sides);
    }
  }
}

// ---- The node's logic, once with each map: libraries that node_calls.cc became.

void CompareNodes(const Settings& settings) {
  using Call = double (*)(int live, int calls);
  std::vector<std::string> head{"ns a call of NodeMachine"};
  std::vector<Call> nodes;
  for (const std::string& path : settings.nodes) {
    void* const library = dlopen(fs::absolute(path).c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) throw NotFound("{}", dlerror());
    nodes.push_back(reinterpret_cast<Call>(dlsym(library, "NodeCall")));
    head.push_back(fs::path(path).stem().string().substr(5));
  }
  Head(head);
  for (const int live : {1000, 100'000}) {
    std::vector<Measurement> sides;
    for (const Call call : nodes) {
      sides.emplace_back([call, live] { return call(live, 300'000); });
    }
    Row(fmt::format("{} live objects", live), settings.rounds, sides);
  }
}

int Main(int argc, char** argv) {
  Settings settings;
  CLI::App app("Measures the runtime's store and hash map beside others.");
  app.add_option("--parts", settings.parts, "Which of store, damage, maps, node")
      ->check(CLI::IsMember({"store", "damage", "maps", "node"}));
  app.add_option("--rounds", settings.rounds)->check(CLI::Range(1, 1000));
  app.add_option("--seconds", settings.seconds, "Of each measurement of puts");
  app.add_option("--folder", settings.folder, "For the stores; not there yet, removed at the end")
      ->check(CLI::NonexistentPath);
  app.add_option("--nodes", settings.nodes, "Libraries that node_calls.cc became");
  CLI11_PARSE(app, argc, argv);
  for (const std::string& part : settings.parts) {
    if (part == "store") CompareStores(settings);
    if (part == "damage") CompareDamage(settings);
    if (part == "maps") CompareMaps(settings);
    if (part == "node") CompareNodes(settings);
  }
  fs::remove_all(settings.folder);
  return 0;
}

}  // namespace
}  // namespace menger::bench

int main(int argc, char** argv) {
  return menger::bench::RunProgram("store_and_map", menger::bench::Main, argc, argv);
}
