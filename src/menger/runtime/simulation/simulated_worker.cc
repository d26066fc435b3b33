#include "menger/runtime/simulation/simulated_worker.h"

#include <algorithm>
#include <utility>

namespace menger::simulation {

std::string RootOf(const TaskFailure& failure) {
  if (failure.kind != FailureKind::kException) return FailureKindName(failure.kind);
  if (!failure.type.empty()) return failure.type;
  return failure.code == ErrorCode::kInvalidArgument ? "no such resource" : "exception";
}

SimulatedWorker::SimulatedWorker(Surroundings& surroundings, Worker& record, ActorStates* states)
    : surroundings_(surroundings),
      record_(record),
      index_(record.index),
      states_(states != nullptr ? *states : own_states_) {}

// ---- The node's end.

SimulatedWorker::Entry SimulatedWorker::MakeEntry(Surroundings& owner, const Task& task,
                                                  PeerIndex node) {
  Entry entry{.lease = task.lease,
              .number = task.run,
              .bytes = {task.spec->bytes().begin(), task.spec->bytes().end()},
              .records = task.records};
  for (std::uint32_t i = 0; i < task.references; ++i) {
    const Object& argument = *task.arguments[i];
    if (argument.state != Object::State::kReady) throw Internal("an argument is not there");
    if (argument.value.kind == ObjectValue::Kind::kError) throw Internal("an argument failed");
    const std::uint64_t kept = node != 0 ? owner.machine().NameAt(argument, node) : 0;
    if (kept != 0) entry.kept.emplace_back(i, kept);
    if (kept == 0 && node != 0 && argument.value.kind != ObjectValue::Kind::kInline) {
      throw Internal("an argument does not lie where it is read");
    }
    entry.values.push_back(kept != 0 ? Value() : DecodeValue(owner.Read(argument.value).bytes()));
  }
  return entry;
}

bool SimulatedWorker::Recall(LeaseNumber lease) {
  return std::erase_if(queue_, [lease](const Entry& entry) { return entry.lease == lease; }) > 0;
}

std::vector<LeaseNumber> SimulatedWorker::BegunLeases() const {
  if (call_ == nullptr) return {};
  return {call_->entry.lease};
}

SimulatedWorker::Answer SimulatedWorker::MakeAnswer(Surroundings& owner, std::uint64_t request,
                                                    Object& object, Worker& record) {
  Answer answer{.request = request};
  const ObjectValue& value = object.value;
  if (value.kind == ObjectValue::Kind::kError) {
    answer.failed = true;
    answer.root = RootOf(DecodeFailure(value.payload));
    return answer;
  }
  if (record.lender != 0) answer.kept = owner.machine().NameAt(object, record.lender);
  if (answer.kept == 0) {
    answer.value = DecodeValue(owner.Read(value).bytes());
  }
  if (value.kind != ObjectValue::Kind::kInline) {
    owner.machine().objects().Pin(ProcessOf(record), object);
    answer.pinned = object.id;
  }
  return answer;
}

void SimulatedWorker::Ready(Answer answer) {
  if (answer.pinned.valid()) {
    // The worker has read it: it says so at some time.
    Tell([id = answer.pinned](Surroundings& owner, Worker& record, auto&) {
      Object* const read = owner.machine().objects().Find(id);
      if (read != nullptr) owner.machine().objects().Unpin(ProcessOf(record), *read);
    });
  }
  to_worker_.push_back(std::move(answer));
}

void SimulatedWorker::DeliverNews() {
  News news = std::move(to_node_.front());
  to_node_.pop_front();
  for (const ObjectValue& value : news.values) surroundings_.Publish(value);
  if (news.borrower != 0) return surroundings_.Forward(std::move(news));
  news.tell(surroundings_, record_, news.values);
}

void SimulatedWorker::DeliverAnswer() {
  Answer answer = std::move(to_worker_.front());
  to_worker_.pop_front();
  if (call_ != nullptr && answer.request == call_->request) {
    call_->answers.push_back(std::move(answer));
  }
}

// ---- Steps.

bool SimulatedWorker::CanStep() const {
  if (!alive_) return false;
  if (call_ == nullptr) return !queue_.empty();
  return call_->request == 0 || !call_->answers.empty();
}

void SimulatedWorker::Step() {
  if (call_ == nullptr) return Claim();
  if (call_->request != 0) {
    return call_->script.operations[call_->next].kind == Operation::Kind::kGet ? GoOnWithGet()
                                                                               : GoOnWithWait();
  }
  if (call_->next < call_->script.operations.size()) {
    Do(call_->script.operations[call_->next]);
  } else {
    Finish();
  }
}

bool SimulatedWorker::CanTimeOut() const {
  return alive_ && call_ != nullptr && call_->request != 0 &&
         call_->script.operations[call_->next].kind == Operation::Kind::kWait;
}

void SimulatedWorker::TimeOut() { GoOnWithWait(); }

void SimulatedWorker::Claim() {
  call_ = std::make_unique<Call>();
  call_->entry = std::move(queue_.front());
  queue_.pop_front();
  const LeaseNumber lease = call_->entry.lease;
  call_->inputs = std::make_unique<CallInputs>(
      call_->entry.records, [this, lease](std::span<const std::byte> told) {
        Tell([lease, bytes = std::vector<std::byte>(told.begin(), told.end())](
                 Surroundings& owner, Worker& record, auto&) {
          owner.machine().Record(record, lease, bytes);
        });
      });
  const SpecHeader& header = call_->entry.spec().header();
  if (header.kind == CallKind::kFunction || header.kind == CallKind::kMethod) return BeginCall();
  ActorState& actor = states_[header.actor];
  switch (header.kind) {
    case CallKind::kFunction:
    case CallKind::kMethod:
      return;
    case CallKind::kReserve:
      throw Internal("a worker was given a reservation");
    case CallKind::kConstruct:
      actor = {.state = Mix(header.actor.low)};
      return Report(Value(), "");
    case CallKind::kSave: {
      Value state{.state = actor.state, .position = actor.position};
      if (actor.kept) state.references.push_back(*actor.kept);
      return Report(std::move(state), "");
    }
    case CallKind::kLoad: {
      const Value& state = call_->entry.values.at(0);
      if (actor.position != 0) throw Internal("an actor is loaded after {} calls", actor.position);
      actor = {.state = state.state, .position = state.position};
      if (!state.references.empty()) {
        actor.kept = state.references.front();
        Adopt(actor.kept->object);
      }
      return Report(std::nullopt, "");
    }
  }
}

void SimulatedWorker::BeginCall() {
  const SpecHeader& header = call_->entry.spec().header();
  const bool method = header.kind == CallKind::kMethod;
  if (method && states_[header.actor].state == 0)
    throw Internal("an actor is not where it is called");
  call_->content = ContentOf(call_->entry.spec());
  std::vector<SlotKind> kinds;
  for (const Reference& given : call_->content.given) {
    kinds.push_back(given.kind);
    Adopt(given.object);
    call_->handles.push_back(given.object);
  }
  call_->slots = call_->content.given;
  call_->script =
      MakeScript(call_->content.seed, static_cast<int>(call_->content.depth), kinds, method);
  call_->fold = Mix(call_->content.seed);
  for (const Value& value : call_->entry.values) call_->fold = Mix(call_->fold ^ value.fold);
  if (!method) return;
  ActorState& actor = states_[header.actor];
  actor.state = Mix(actor.state ^ header.task.low);
  ++actor.position;
}

void SimulatedWorker::Do(const Operation& operation) {
  switch (operation.kind) {
    case Operation::Kind::kCall:
      MakeCall(CallKind::kFunction, operation.seed, operation);
      break;
    case Operation::Kind::kMethod:
      MakeCall(CallKind::kMethod, operation.seed, operation);
      break;
    case Operation::Kind::kCreate:
      MakeCall(CallKind::kConstruct, operation.seed, operation);
      break;
    case Operation::Kind::kPut:
      DoPut(operation);
      break;
    case Operation::Kind::kGet:
      call_->inner = false;
      return BeginWait({call_->slots[operation.target].object});
    case Operation::Kind::kWait: {
      if (call_->inputs->knows()) {
        return CallAfterWait(operation, call_->inputs->Plain([] { return std::uint64_t{0}; }));
      }
      std::vector<ObjectId> objects;
      for (const int slot : operation.values) objects.push_back(call_->slots[slot].object);
      return BeginWait(objects);
    }
  }
  ++call_->next;
}

void SimulatedWorker::MakeCall(CallKind kind, std::uint64_t seed, const Operation& operation) {
  SpecHeader header{.kind = kind,
                    .task = ChildTask(call_->entry.run(), ++call_->calls),
                    .parent = call_->entry.spec().task()};
  Reference result{.object = ResultOf(header.task, 0)};
  if (kind == CallKind::kMethod) {
    const Reference& actor = call_->slots[operation.actor];
    header.actor = actor.actor;
    header.home = actor.object;
  } else if (kind == CallKind::kConstruct) {
    header.actor = result.actor = ActorOf(header.task);
    result.kind = SlotKind::kActor;
  }
  surroundings_.Complete(header);
  std::vector<ObjectId> values;
  CallContent content{.seed = seed};
  if (operation.kind != Operation::Kind::kWait) {
    content.depth = call_->content.depth > 0 ? call_->content.depth - 1 : 0;
    for (const int slot : operation.values) values.push_back(call_->slots[slot].object);
    for (const int slot : operation.references) content.given.push_back(call_->slots[slot]);
    call_->slots.push_back(result);
  }
  call_->handles.push_back(result.object);
  auto spec = std::make_shared<SpecPointer>(
      MakeSpec(header, values, content, surroundings_.NeedsOf(header)));
  Tell([spec](Surroundings& owner, Worker& record, auto&) {
    owner.CheckCall(**spec);
    owner.machine().Submit(ProcessOf(record), std::move(*spec), &record);
  });
}

void SimulatedWorker::DoPut(const Operation& operation) {
  const ObjectId id = PutBy(call_->entry.run(), ++call_->puts);
  Value value{.fold = Mix(operation.seed)};
  std::vector<ObjectId> contained;
  if (!operation.references.empty()) {
    value.references.push_back(call_->slots[operation.references.front()]);
    contained.push_back(value.references.front().object);
  }
  call_->slots.push_back(
      {.object = id, .kind = contained.empty() ? SlotKind::kPlain : SlotKind::kValue});
  call_->handles.push_back(id);
  Tell(
      [id, fold = value.fold, contained](Surroundings& owner, Worker& record, auto& values) {
        owner.CheckPut(id, fold);
        owner.machine().Put(ProcessOf(record), id, values[0], contained);
      },
      {surroundings_.MakeValue(index_, Encode(value))});
}

// ---- Waiting.

void SimulatedWorker::BeginWait(const std::vector<ObjectId>& objects) {
  call_->watched = objects;
  call_->request = (std::uint64_t{index_} << 32) | ++requests_;
  call_->answers.clear();
  Tell([objects, request = call_->request](Surroundings& owner, Worker& record, auto&) {
    NodeMachine& machine = owner.machine();
    std::vector<Object*> awaited;
    for (const ObjectId id : objects) {
      Object& object = machine.objects().FindOrMake(id);
      if (machine.WatchObject({ProcessOf(record), request}, object, /*with_value=*/true)) {
        owner.Bring(record, request, object);
      } else {
        awaited.push_back(&object);
      }
    }
    if (!awaited.empty()) machine.Block(record, awaited);
  });
}

void SimulatedWorker::EndWait() {
  Tell([request = call_->request, objects = std::move(call_->watched)](Surroundings& owner,
                                                                       Worker& record, auto&) {
    NodeMachine& machine = owner.machine();
    for (const ObjectId id : objects) {
      if (Object* const object = machine.objects().Find(id)) {
        machine.Unwatch({ProcessOf(record), request}, *object);
      }
    }
    machine.Unblock(record);
  });
  call_->request = 0;
}

void SimulatedWorker::GoOnWithGet() {
  const Answer answer = std::move(call_->answers.front());
  EndWait();
  const std::vector<Reference>& references = answer.value.references;
  if (answer.failed) return Report(std::nullopt, answer.root);
  call_->fold = Mix(call_->fold ^ answer.value.fold);
  if (!call_->inner && !references.empty()) {
    Adopt(references.front().object);
    call_->handles.push_back(references.front().object);
    call_->inner = true;
    return BeginWait({references.front().object});
  }
  ++call_->next;
}

void SimulatedWorker::GoOnWithWait() {
  const std::uint64_t ready = call_->inputs->Plain([this] { return call_->answers.size(); });
  EndWait();
  CallAfterWait(call_->script.operations[call_->next], ready);
}

void SimulatedWorker::CallAfterWait(const Operation& operation, std::uint64_t ready) {
  MakeCall(CallKind::kFunction, SeedAfterWait(operation.seed, ready), operation);
  ++call_->next;
}

// ---- References and ends.

void SimulatedWorker::Adopt(ObjectId id) {
  Tell([id](Surroundings& owner, Worker& record, auto&) {
    ObjectTable& objects = owner.machine().objects();
    Object* const object = objects.Find(id);
    if (object == nullptr) throw Internal("object {} is adopted and unknown", ToString(id));
    objects.AddReferrer(ProcessOf(record), *object);
  });
}

void SimulatedWorker::Forget(ObjectId id) {
  Tell([id](Surroundings& owner, Worker& record, auto&) {
    ObjectTable& objects = owner.machine().objects();
    if (Object* const object = objects.Find(id)) objects.DropReferrer(ProcessOf(record), *object);
  });
}

bool SimulatedWorker::DropKeepsake() {
  if (!alive_ || !keepsake_) return false;
  Forget(*keepsake_);
  keepsake_.reset();
  return true;
}

void SimulatedWorker::Finish() {
  const SpecHeader& header = call_->entry.spec().header();
  if (!call_->content.given.empty() && surroundings_.LeavesKeepsake(header)) {
    DropKeepsake();
    keepsake_ = call_->content.given.front().object;
    Adopt(*keepsake_);
  }
  Value value{.fold = Mix(call_->fold)};
  if (call_->script.result_reference >= 0) {
    value.references.push_back(call_->slots[call_->script.result_reference]);
  }
  if (header.kind == CallKind::kMethod) {
    ActorState& actor = states_[header.actor];
    value.state = actor.state;
    value.position = actor.position;
    // Some calls leave a reference to later ones.
    if (!value.references.empty() && header.task.low % 2 == 0) {
      if (actor.kept) Forget(actor.kept->object);
      actor.kept = value.references.front();
      Adopt(actor.kept->object);
    }
    if (actor.kept) {
      Tell([id = actor.kept->object](Surroundings& owner, Worker&, auto&) {
        const Object* const object = owner.machine().objects().Find(id);
        const bool there =
            object != nullptr && (object->foreign || object->state == Object::State::kReady);
        if (!there) {
          throw Internal("what an actor keeps is gone: {}", ToString(id));
        }
      });
    }
  }
  const bool flaky = header.retry_errors && call_->entry.number < call_->script.flaky;
  Report(std::move(value), flaky ? "flaky" : call_->script.throws ? "exception" : "");
}

// `root`: what failed first; "" if nothing did.
void SimulatedWorker::Report(std::optional<Value> value, const std::string& root) {
  const SpecHeader header = call_->entry.spec().header();
  const LeaseNumber lease = call_->entry.lease;
  std::vector<ObjectId> last;
  if (root.empty() && value && !value->references.empty()) {
    last.push_back(value->references.front().object);
  }
  for (const ObjectId id : call_->handles) {
    const auto kept = std::find(last.begin(), last.end(), id);
    if (kept == last.end()) Forget(id);
  }
  const bool method = header.kind == CallKind::kMethod;
  const auto check = [header,
                      state = method ? states_[header.actor] : ActorState()](Surroundings& owner) {
    if (header.kind == CallKind::kMethod) owner.CheckMethod(header, state);
  };
  if (root.empty()) {
    std::vector<ObjectValue> values;
    if (value) values.push_back(surroundings_.MakeValue(index_, Encode(*value)));
    Tell(
        [check, lease, last](Surroundings& owner, Worker& record, auto& results) {
          check(owner);
          std::vector<TaskResult> told;
          for (const ObjectValue& result : results) told.push_back({result, last});
          owner.machine().Finished(record, lease, told, 1e5);
        },
        std::move(values));
  } else {
    // Who throws in every run says so: otherwise its last run might be lost instead.
    TaskFailure failure{.kind = FailureKind::kException,
                        .type = root,
                        .text = "it threw",
                        .final = root != "flaky"};
    Tell([check, lease, failure](Surroundings& owner, Worker& record, auto&) {
      check(owner);
      owner.machine().Failed(record, lease, failure, 1e5);
    });
  }
  for (const ObjectId id : last) {
    for (const ObjectId handle : call_->handles) {
      if (handle == id) Forget(id);
    }
  }
  call_.reset();
}

std::string SimulatedWorker::Describe() const {
  if (call_ == nullptr) return fmt::format("worker {}: {} queued", index_, queue_.size());
  return fmt::format("worker {}: call {} at operation {} of {}, {}, {} queued", index_,
                     ToString(call_->entry.spec().task()), call_->next,
                     call_->script.operations.size(), call_->request != 0 ? "waits" : "runs",
                     queue_.size());
}

}  // namespace menger::simulation
