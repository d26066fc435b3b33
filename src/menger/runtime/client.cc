#include "menger/runtime/client.h"

namespace menger {

CallContext*& ThisCall() {
  static thread_local CallContext* call = nullptr;
  return call;
}

}  // namespace menger
