#include "menger/runtime/cluster/cluster_node.h"

#include <atomic>
#include <thread>
#include <utility>

#include "menger/base/log.h"
#include "menger/base/mutex.h"
#include "menger/runtime/cluster/cluster_metrics.h"
#include "menger/runtime/cluster/describe_program.h"
#include "menger/runtime/cluster/ended_lives.h"
#include "menger/runtime/cluster/guest_programs.h"
#include "menger/runtime/cluster/join_watch.h"
#include "menger/runtime/cluster/keeper.h"
#include "menger/runtime/cluster/lane_switch.h"
#include "menger/runtime/cluster/member_loop.h"
#include "menger/runtime/cluster/name_directory.h"
#include "menger/runtime/cluster/node_ids.h"
#include "menger/runtime/cluster/node_streams.h"
#include "menger/runtime/cluster/program_server.h"
#include "menger/runtime/cluster/question_server.h"
#include "menger/runtime/cluster/remote_store.h"
#include "menger/runtime/cluster/store_server.h"
#include "menger/runtime/control/embedded_store.h"

namespace menger {
namespace {

using Role = LocalNode::Place::Role;

constexpr std::chrono::milliseconds kLeaveMax{2'000};
constexpr std::chrono::seconds kNamesMax{5};
constexpr std::chrono::milliseconds kFarewellMax{300};
constexpr std::chrono::milliseconds kToldMax{1'000};
constexpr std::chrono::milliseconds kLinesMax{500};  // Of workers that have printed them by then.

NodeLife LifeOf(const NodeRecord& record) { return {record.id, record.epoch}; }

// That no other node has; 53 bits are what JSON's numbers keep.
std::uint64_t JobOf(const NodeId& id) { return id.low >> 11 | 1; }

std::chrono::nanoseconds Seconds(double seconds) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
      std::chrono::duration<double>(seconds));
}

void AwaitUntil(FunctionRef<bool()> is_so, std::chrono::nanoseconds most) {
  const Deadline deadline = Deadline::After(most);
  while (!is_so() && !deadline.expired()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

std::string WhyOver(NodeLease::End end) {
  if (end == NodeLease::End::kNameTaken) return "another node of the cluster has its name";
  return "it could not reach the control store of the cluster, and others may have given it up";
}

}  // namespace

class ClusterNode::State {
 public:
  explicit State(ClusterNodeOptions options) : options_(std::move(options)) {
    try {
      Open();
      Join();
    } catch (...) {
      Close();
      throw;
    }
  }
  ~State() { Close(); }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  LocalNode& node() { return *node_; }
  const std::string& address() const { return record_.address; }
  // Members but those whose end this one has heard of, or found out, before the control store did.
  std::vector<NodeRecord> Nodes() const;
  std::vector<std::string> Names() const;
  bool IsMember(const NodeLife& life) const { return Member(life).has_value(); }
  ControlStore& store() { return *store_; }
  RecordReader reader() const {
    return {.lease = [this] { return loop_->Lives() ? loop_->lease() : 0; },
            .is_member = [this](const NodeLife& life) { return IsMember(life); }};
  }
  void Drain() {
    loop_->Drain();  // For those who look.
    node_->Drain();
  }

 private:
  std::optional<NodeRecord> Member(const NodeLife& life) const;
  bool is_head() const { return options_.access.address.empty(); }
  bool is_driver() const { return options_.role == Role::kDriver; }

  // ---- Joining.
  void Open();
  std::unique_ptr<ProgramServer> MakeProgramServer() const;
  void Join();
  void CheckJob() const;
  LocalNode::Place PlaceOfNode();
  QuestionServer::Answer Answers();
  std::string Keep(const NodeLife& driver) const;

  // ---- By the thread of the streams, or of the loop.
  NodeStreams::Hooks StreamHooks();
  NameDirectory::Hooks NameHooks();
  GuestPrograms::Hooks ProgramHooks();
  void Changed(const NodeChange& change);
  void Meet(const NodeRecord& other);
  bool Found(const NodeLife& node);
  bool IsProgram(const NodeLife& node) const;
  // `cause`: `why`, as it is counted.
  void Gone(const NodeLife& node, bool is_program, const std::string& cause,
            const std::string& why);
  void NoteEnd(const NodeLife& node, bool is_program, const std::string& cause,
               const std::string& why);
  void Parted(const NodeLife& node, const Error& why);
  void Over(NodeLease::End end);

  void Close();
  void Part();
  void Leave();

  const ClusterNodeOptions options_;
  NodeRecord record_;  // This node's.
  // Whose life ends as they are told: those who have been here.
  std::unique_ptr<EmbeddedStore> own_store_;  // The head's.
  std::unique_ptr<StoreServer> store_server_;
  std::unique_ptr<ProgramServer> program_server_;
  std::unique_ptr<QuestionServer> question_server_;
  std::unique_ptr<NodeStreams> node_streams_;
  std::unique_ptr<LaneSwitch> lanes_;
  std::shared_ptr<PeerStreamOwner> fetcher_;
  std::unique_ptr<PeerStreams> streams_;  // Ends before all of these.
  std::unique_ptr<RemoteStore> remote_store_;
  mutable Mutex store_mutex_;      // Held by who answers questions with it.
  ControlStore* store_ = nullptr;  // One of these; null once this ends.
  std::unique_ptr<GuestPrograms> programs_;
  std::unique_ptr<NameDirectory> names_;        // A driver's.
  LocalNode* node_ = nullptr;                   // Ended by Close.
  std::atomic<LocalNode*> answering_{nullptr};  // Likewise: somebody may ask before it is there.
  std::unique_ptr<MemberLoop> loop_;
  EndedLives ended_;
  mutable FormerKeepers former_keepers_{options_.access};
  std::atomic<MemberLoop*> doubter_{nullptr};  // Likewise: somebody may connect before it is there.
};

// ---- Joining.

void ClusterNode::State::Open() {
  CheckNodeName(options_.name);
  record_.id = DrawNodeId();
  record_.name = options_.name;
  record_.resources = options_.runtime.resources;
  record_.store_bytes = LocalNode::StoreBytes(options_.runtime);
  if (options_.role == Role::kNode) {
    record_.resources.Set(NodeResource(record_.id), 1);
    if (is_head()) record_.resources.Set(kHeadResource, 1);
  }
  if (is_driver()) {
    record_.job = options_.runtime.job != 0 ? options_.runtime.job : JobOf(record_.id);
  }
  program_server_ = MakeProgramServer();
  PeerStreamOptions streams{
      .own = {.node = record_.id}, .token = options_.access.token, .tls = options_.access.tls};
  streams_ = std::make_unique<PeerStreams>(streams);
  if (is_head()) {
    own_store_ = std::make_unique<EmbeddedStore>(EmbeddedStoreOptions{.journal = options_.journal});
    store_server_ = std::make_unique<StoreServer>(*own_store_);
    store_ = own_store_.get();
  } else {
    remote_store_ = std::make_unique<RemoteStore>(*streams_, options_.access.address);
    store_ = remote_store_.get();
  }
  node_streams_ =
      std::make_unique<NodeStreams>(*streams_, streams.own, StreamHooks(), NodeStreams::Options{});
  question_server_ = std::make_unique<QuestionServer>(Answers());
  lanes_ = std::make_unique<LaneSwitch>(*node_streams_, store_server_.get(), program_server_.get(),
                                        *question_server_);
  const std::string listen = options_.listen.empty()
                                 ? OwnAddressTowards(options_.access.address, streams)
                                 : options_.listen;
  record_.address = streams_->Listen(listen, *lanes_);
  loop_ = std::make_unique<MemberLoop>(record_, options_.membership, *store_);
  doubter_.store(loop_.get());
}

std::unique_ptr<ProgramServer> ClusterNode::State::MakeProgramServer() const {
  if (!is_driver()) {
    return std::make_unique<ProgramServer>(CacheFolder(ProgramCacheFolder(options_.cache_folder)));
  }
  if (!options_.program) {
    return std::make_unique<ProgramServer>(DescribeProgram(options_.runtime.worker_program));
  }
  const KeptProgram& program = *options_.program;
  return std::make_unique<ProgramServer>(program.manifest, [&program](const ProgramFile& file) {
    return program.paths.at(file.content.hash);
  });
}

void ClusterNode::State::Join() {
  JoinWatch watch(remote_store_.get(), options_.access.address);
  try {
    record_ = loop_->AwaitMember(
        is_head(),
        [&watch, this] {
          watch.Look();
          if (options_.is_stopped && options_.is_stopped()) {
            throw Cancelled("it was told to end before it had joined the cluster at {}",
                            options_.access.address);
          }
        },
        Deadline::After(Seconds(options_.runtime.join_seconds)));
  } catch (const Error& error) {
    throw watch.WhyNot(error);
  }
  streams_->SetEpoch(record_.epoch);
  CheckJob();
  RuntimeOptions runtime = options_.runtime;
  runtime.job = record_.job != 0 ? record_.job : JobOf(record_.id);
  runtime.resources = record_.resources;
  if (options_.role != Role::kNode) {
    names_ = std::make_unique<NameDirectory>(*store_, NameHooks(), NameDirectory::Options{});
  }
  node_ = new LocalNode(runtime, PlaceOfNode());
  answering_.store(node_);
  if (options_.role == Role::kNode) {
    programs_ = std::make_unique<GuestPrograms>(*streams_, options_.cache_folder, ProgramHooks());
    fetcher_ = programs_->owner();
  }
  loop_->Begin({.on_change = [this](const NodeChange& change) { Changed(change); },
                .tend =
                    [this](std::int64_t now) {
                      lanes_->refusals().Tend(now);
                      for (const NodeLife& life : node_->Strangers()) loop_->Seek(life);
                      return node_streams_->Tend(now);
                    },
                .on_over = [this](NodeLease::End end) { Over(end); }});
}

void ClusterNode::State::CheckJob() const {
  if (record_.job == 0) return;
  for (const NodeRecord& node : loop_->Nodes()) {
    if (node.id == record_.id || node.job != record_.job) continue;
    throw FailedPrecondition(
        "job {} runs in the cluster already; RuntimeOptions::job must be a number of its own, or 0",
        record_.job);
  }
}

LocalNode::Place ClusterNode::State::PlaceOfNode() {
  return {.own = LifeOf(record_),
          .role = options_.role,
          .node_patience = Seconds(is_driver() ? options_.runtime.node_wait_seconds : 0),
          .post =
              [this](const std::vector<Neighbours::Flying>& packets) {
                if (loop_->Lives()) node_streams_->Send(packets);
              },
          .parted = [this](const NodeLife& node, const Error& why) { Parted(node, why); },
          .ask_name = names_ != nullptr
                          ? [this](const NameQuestion& question) { names_->Ask(question); }
                          : std::function<void(const NameQuestion&)>(),
          .members = [this] { return Nodes(); },
          .names = [this] { return Names(); },
          .add_metrics =
              [this](MetricsText& text) {
                AddMetrics(CountsOf(*node_streams_, *loop_, ended_), text);
              }};
}

// ---- What is told.

NodeStreams::Hooks ClusterNode::State::StreamHooks() {
  return {
      .on_packets =
          [this](std::vector<Neighbours::Flying> packets) {
            if (loop_->Lives()) node_->Arrive(std::move(packets));
          },
      .on_opened = [this](const NodeLife& node, PeerLane lane) { node_->StreamOpened(node, lane); },
      .on_doubt =
          [this] {
            if (MemberLoop* const loop = doubter_.load()) loop->Hint();
          },
      .on_unreachable =
          [this](const NodeLife& node, const std::string& why) {
            Gone(node, IsProgram(node), "unreachable", why);
          },
      .on_found = [this](const NodeLife& node) { return Found(node); }};
}

QuestionServer::Answer ClusterNode::State::Answers() {
  return [this](std::string_view question, FunctionRef<void(std::string_view)> write) {
    LocalNode* const node = answering_.load();
    if (node == nullptr) throw Unavailable("it is about to join the cluster");
    const std::optional<NodeLife> driver = DriverOfKeepQuestion(question);
    if (driver) return write(Keep(*driver));
    node->Answer(question, write);
  };
}

// Only members have one.
std::string ClusterNode::State::Keep(const NodeLife& driver) const {
  if (!options_.keep) throw InvalidArgument("this process keeps no detached actors");
  const std::optional<NodeRecord> program = Member(driver);
  if (!program || program->job == 0) {
    throw Unavailable("the head has not met program {}", ToString(driver.node));
  }
  // That of the head before, whose place this one has taken.
  const bool took_place = is_head() && FailOversOf(record_.epoch) > 0;
  const std::string before = took_place ? former_keepers_.Find(loop_->Nodes(), driver) : "";
  return before.empty() ? options_.keep(*program) : before;
}

NameDirectory::Hooks ClusterNode::State::NameHooks() {
  NameDirectory::Hooks hooks{
      .on_answer =
          [this](const NameQuestion& question, const NameAnswer& answer) {
            if (LocalNode* const node = answering_.load()) node->NameAnswered(question, answer);
          },
      .on_lost =
          [this](const NamedActor& actor) {
            if (LocalNode* const node = answering_.load()) node->NameLost(actor);
          },
      .lease = [this] { return loop_->lease(); },
      .is_member = reader().is_member,
      .has_met =
          [this](const NodeLife& life) {
            LocalNode* const node = answering_.load();
            if (node == nullptr || node->HasMet(life)) return true;
            loop_->Hint();
            return false;
          },
      .is_reached = [this](const NodeLife& life) { return node_streams_->IsConnected(life); }};
  if (!options_.program) {
    hooks.find_keeper = [this] {
      return AskForKeeper(options_.access, loop_->Nodes(), LifeOf(record_));
    };
  }
  return hooks;
}

GuestPrograms::Hooks ClusterNode::State::ProgramHooks() {
  return {.on_ready =
              [this](const NodeLife& driver, const GuestProgram& program) {
                GuestProgram here = program;
                here.program.variables.emplace_back(kNodeIdVariable, ToString(record_.id));
                node_->SetProgram(driver, here);
              },
          .on_failed = [this](const NodeLife& driver,
                              const std::string& why) { node_->CannotServe(driver, why); }};
}

void ClusterNode::State::Changed(const NodeChange& change) {
  const NodeRecord& other = change.node;
  if (change.kind == NodeChange::Kind::kMet) return Meet(other);
  if (change.kind != NodeChange::Kind::kDied) return;
  node_streams_->Forget(LifeOf(other));
  if (programs_ != nullptr) programs_->Drop(LifeOf(other));
  Gone(LifeOf(other), other.job != 0, "lease over",
       "its lease is over: it is dead, or cut off from the control store");
}

// Of a member; a record that is gone says it itself.
bool ClusterNode::State::IsProgram(const NodeLife& node) const {
  const std::optional<NodeRecord> member = Member(node);
  return member && member->job != 0;
}

void ClusterNode::State::Parted(const NodeLife& node, const Error& why) {
  const bool left = why.code() == ErrorCode::kUnavailable;
  NoteEnd(node, IsProgram(node), left ? "left" : "said what nobody may", why.what());
  node_streams_->Forget(node);
  loop_->Hint();
}

void ClusterNode::State::Gone(const NodeLife& node, bool is_program, const std::string& cause,
                              const std::string& why) {
  if (node_->HearOfEnd(node, why)) NoteEnd(node, is_program, cause, why);
}

void ClusterNode::State::NoteEnd(const NodeLife& node, bool is_program, const std::string& cause,
                                 const std::string& why) {
  ended_.Note(node, cause, loop_->Nodes());
  // Programs come and go: that is no news to others.
  if (is_program && is_driver()) return;
  LogInfo("{} {} is gone: {}", is_program ? "program" : "node", ToString(node.node), why);
}

bool ClusterNode::State::Found(const NodeLife& node) {
  const std::optional<NodeRecord> member = Member(node);
  if (!member) return false;
  LogInfo("{} {} is reached again", member->job != 0 ? "program" : "node", ToString(node.node));
  ended_.Forget(node);
  Meet(*member);
  return true;
}

void ClusterNode::State::Meet(const NodeRecord& other) {
  const NodeLife life = LifeOf(other);
  // Drivers have nothing for each other but references.
  node_->Meet(other, AreBeside(other, record_));
  node_streams_->Meet(life, other.address, MonotonicNanoseconds());
  if (programs_ == nullptr || other.job == 0) return;
  programs_->Drop(life);  // Of a meeting before.
  programs_->Bring(life, other.address, other.job);
}

std::vector<NodeRecord> ClusterNode::State::Nodes() const {
  std::vector<NodeRecord> nodes = loop_->Nodes();
  std::erase_if(nodes, [this](const NodeRecord& node) { return ended_.Has(LifeOf(node)); });
  return nodes;
}

std::vector<std::string> ClusterNode::State::Names() const {
  const MutexLock lock(store_mutex_);
  if (store_ == nullptr) throw Unavailable("this process leaves the cluster");
  return NamesIn(*store_, reader().is_member, Deadline::After(kNamesMax));
}

std::optional<NodeRecord> ClusterNode::State::Member(const NodeLife& life) const {
  for (const NodeRecord& node : loop_->Nodes()) {
    if (LifeOf(node) == life) return node;
  }
  return std::nullopt;
}

void ClusterNode::State::Over(NodeLease::End end) {
  const std::string why = WhyOver(end);
  LogWarning("this process is no longer one of the cluster: {}", why);
  const std::vector<NodeRecord> members = loop_->Nodes();
  for (const NodeRecord& other : members) {
    if (other.id == record_.id) continue;
    const NodeLife life = LifeOf(other);  // It lives on, as far as is known here.
    node_streams_->Forget(life);
    node_->HearOfEnd(life, fmt::format("this process's own life in the cluster is over: {}", why));
    ended_.Note(life, "cut off", members);
  }
  node_->CutOff(fmt::format("this process is no longer one of the cluster: {}", why));
  if (options_.on_over) options_.on_over(why);
}

// ---- The end.

void ClusterNode::State::Close() {
  if (node_ != nullptr && loop_->Lives()) Part();
  if (loop_ != nullptr && loop_->Lives()) Leave();
  if (loop_ != nullptr) loop_->Stop();
  if (names_ != nullptr) names_->Stop();
  if (remote_store_ != nullptr) remote_store_->Stop();  // Whoever waits for it goes on.
  {
    const MutexLock lock(store_mutex_);
    store_ = nullptr;
  }
  remote_store_.reset();
  programs_.reset();
  streams_.reset();                                           // From here on nobody calls,
  if (question_server_ != nullptr) question_server_->Stop();  // nor asks.
  if (LocalNode* const node = std::exchange(node_, nullptr)) node->End();
}

// Where the head is gone, as where all of a cluster end, nobody would hear it.
void ClusterNode::State::Leave() {
  const auto is_gone = [this] { return remote_store_ && remote_store_->last_failure(); };
  if (loop_->Leave(Deadline::After(kLeaveMax), is_gone)) return;
  if (is_gone()) {
    return LogInfo("leaving without the head: {}", remote_store_->last_failure()->what());
  }
  LogWarning("the control store of the cluster did not hear in time that this node leaves");
}

// What it has to tell others happens also if it leaves at once, while the stream to them is being
// opened: that an actor is to end, say. And what a driver's calls have printed is seen.
void ClusterNode::State::Part() {
  if (is_driver()) {
    node_->AskForLines();
    AwaitUntil([this] { return !node_->AwaitsLines(); }, kLinesMax);
  }
  AwaitUntil([this] { return node_->OthersKnowAll(); }, kToldMax);
  node_->SayFarewell();  // Whoever has heard it closes his streams.
  AwaitUntil([this] { return node_streams_->connected() == 0; }, kFarewellMax);
}

std::string NodeResource(const NodeId& node) { return "node:" + ToString(node); }

ClusterNode::ClusterNode(ClusterNodeOptions options)
    : state_(std::make_unique<State>(std::move(options))) {}

ClusterNode::~ClusterNode() = default;

LocalNode& ClusterNode::node() { return state_->node(); }
const std::string& ClusterNode::address() const { return state_->address(); }
void ClusterNode::Drain() { state_->Drain(); }
DrainProgress ClusterNode::HowFarDrained() const { return state_->node().HowFarDrained(); }
std::vector<NodeRecord> ClusterNode::Nodes() const { return state_->Nodes(); }
bool ClusterNode::IsMember(const NodeLife& life) const { return state_->IsMember(life); }
ControlStore& ClusterNode::store() { return state_->store(); }
RecordReader ClusterNode::reader() const { return state_->reader(); }

}  // namespace menger
