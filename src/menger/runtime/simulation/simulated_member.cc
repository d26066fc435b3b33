#include "menger/runtime/simulation/simulated_member.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "menger/base/error.h"

namespace menger::simulation {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kLatePart = 100;  // Of a lease.
constexpr std::int64_t kOffsetMax = std::int64_t{1} << 50;

}  // namespace

SimulatedMember::SimulatedMember(const NodeRecord& self, const MembershipOptions& options,
                                 SimulatedStore& store, int client, Random& random,
                                 std::function<void(SimulatedMember&)> noted)
    : store_(store),
      random_(random),
      membership_(self, options),
      noted_(std::move(noted)),
      client_(client),
      rate_(random.Uniform(1 - kClockDrift, 1 + kClockDrift)),
      offset_(random.Integers(0, kOffsetMax)),
      late_max_(options.lease.count() / kLatePart),
      connection_(store.Connect(client)),
      watch_(connection_->Watch(StoreTable::kNodes, "", [this] { Suspect(); })) {}

std::int64_t SimulatedMember::Local() const {
  return offset_ + static_cast<std::int64_t>(static_cast<double>(store_.now()) * rate_);
}

std::int64_t SimulatedMember::WakeAt() const {
  const std::int64_t wake = membership_.wake_at();
  if (!runs() || wake == kNever) return kNever;
  const double real = static_cast<double>(wake - offset_) / rate_;
  return std::max(static_cast<std::int64_t>(real) + late_ + 1, paused_until_);
}

void SimulatedMember::Go() {
  std::vector<StoreAsk> asks = membership_.Next(Local());
  if (over() && !asks.empty()) throw Internal("a life that is over asks for something");
  for (StoreAsk& ask : asks) Ask(std::move(ask));
  late_ = random_.Integers(0, late_max_ + 1);
  noted_(*this);
}

void SimulatedMember::Ask(StoreAsk ask) {
  const bool member = own().state() == NodeLease::State::kMember;
  if (member && !ask.batch.empty() && ask.batch[0].kind == StoreOperation::Kind::kAcquire) {
    ++leases_again_;
  }
  const Deadline deadline = Deadline::After(std::chrono::nanoseconds(ask.patience));
  if (!ask.batch.empty()) {
    return connection_->Submit(std::move(ask.batch), deadline,
                               [this, number = ask.number](const auto& results) {
                                 if (paused_until_ > store_.now()) return;
                                 membership_.Answered(number, results, Local());
                                 Go();
                               });
  }
  connection_->Scan(ask.table, "", ask.after, ask.limit, deadline,
                    [this, number = ask.number](StorePage page) {
                      if (paused_until_ > store_.now()) return;
                      membership_.Read(number, std::move(page), Local());
                      Go();
                    });
}

void SimulatedMember::Drain() {
  membership_.Drain(Local());
  Go();
}

void SimulatedMember::Leave() {
  membership_.Leave(Local());
  Go();
}

void SimulatedMember::Suspect() { membership_.Hint(Local()); }

void SimulatedMember::End() {
  watch_.reset();
  connection_.reset();
}

}  // namespace menger::simulation
