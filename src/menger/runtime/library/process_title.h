#pragma once

#include <string_view>

namespace menger {

// What `ps` and `top` show of a worker's process, as Ray's: "ray::NAME" while it does a call of
// that name, "ray::IDLE" between calls, or "ray::CLASS" where an actor lives. Any thread may call
// these; the short name of the process, of 15 bytes, is that of what its main thread does.
//
// It is written over the process's arguments, and cut where they end.

// The process is the actor's, of that class, from now on; it is being constructed.
void ShowConstruction(std::string_view class_name);

// While it lives the process does the call.
class ShownCall {
 public:
  explicit ShownCall(std::string_view name);
  ~ShownCall();
  ShownCall(const ShownCall&) = delete;
  ShownCall& operator=(const ShownCall&) = delete;
};

}  // namespace menger
