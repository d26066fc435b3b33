#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace menger {

// The CPUs that this process may use: the affinity mask of its main thread, so pinning a thread
// does not change it.
std::vector<int> AvailableCpuList();
int AvailableCpus();  // At least 1.

struct ThreadOptions {
  std::string name;  // Shown by debuggers, `top -H` and error texts; the kernel keeps the first 15
                     // characters.
  int cpu = -1;      // The one CPU to run on; -1 leaves it to the kernel. A refusal is logged and
                     // otherwise ignored.
};

// A thread that cannot be forgotten: it has a name, it joins in its destructor, and an exception
// that ends it is kept and thrown again by Join. Whoever owns it must first make its function
// return. Movable; used by one owner thread.
class Thread {
 public:
  Thread();  // No thread; Join does nothing.
  Thread(ThreadOptions options, std::function<void()> function);
  Thread(Thread&&) noexcept;
  Thread& operator=(Thread&&) noexcept;  // Joins the thread that it replaces.
  ~Thread();                             // Joins; logs an exception that nobody fetched with Join.

  // Waits for the function to end and throws what ended it (an Error prefixed by the thread's
  // name). Further calls do nothing.
  void Join();

  bool joinable() const;  // There is a thread that has not been joined.
  bool finished() const;  // Its function has returned or thrown: Join will not wait.
  const std::string& name() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Restricts the calling thread to one CPU; false if the system refuses.
bool PinThisThread(int cpu);

}  // namespace menger
