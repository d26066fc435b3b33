#pragma once

#include <string_view>

#include "menger/runtime/node/node_machine.h"

namespace menger {

// The node's end of one worker. All is called under the node's lock.
class WorkerHost {
 public:
  virtual ~WorkerHost() = default;

  // See WorkerQueues and NodeEffects.
  virtual bool Offer(const Task& task) = 0;
  virtual bool Recall(const Task& task) = 0;
  virtual void Announce() = 0;
  virtual void Interrupt(const Task& task) = 0;
  virtual void End(std::string_view why) = 0;
  virtual void Dismiss(std::string_view why) { End(why); }

  // An object that the worker watches is ready.
  virtual void Ready(std::uint64_t request, Object& object) = 0;
  // One whose value it watches is on the disk, and there is no room for it.
  virtual void Refuse(std::uint64_t, const Object&, const Payload&) {}

  // The actor of a name that it looks for, if there is one.
  virtual void Named(std::uint64_t, const NameAnswer&) {}

  // Tells the machine what the worker has reported since; false if that is nothing.
  virtual bool Drain(NodeMachine& machine) = 0;
};

}  // namespace menger
