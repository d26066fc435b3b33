#include "menger/base/thread.h"

#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#include <atomic>
#include <exception>
#include <system_error>
#include <thread>
#include <utility>

#include "menger/base/error.h"
#include "menger/base/log.h"

namespace menger {

std::vector<int> AvailableCpuList() {
  cpu_set_t mask;
  CPU_ZERO(&mask);
  std::vector<int> cpus;
  // Machines with more than CPU_SETSIZE (1024) CPUs refuse; the number alone is known there.
  if (sched_getaffinity(getpid(), sizeof(mask), &mask) == 0) {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &mask)) cpus.push_back(cpu);
    }
  } else {
    const int count = static_cast<int>(std::thread::hardware_concurrency());
    for (int cpu = 0; cpu < count; ++cpu) cpus.push_back(cpu);
  }
  if (cpus.empty()) cpus.push_back(0);
  return cpus;
}

int AvailableCpus() { return static_cast<int>(AvailableCpuList().size()); }

bool PinThisThread(int cpu) {
  if (cpu < 0 || cpu >= CPU_SETSIZE) return false;
  cpu_set_t mask;
  CPU_ZERO(&mask);
  CPU_SET(cpu, &mask);
  return pthread_setaffinity_np(pthread_self(), sizeof(mask), &mask) == 0;
}

struct Thread::State {
  ThreadOptions options;
  std::function<void()> function;
  std::exception_ptr failure;  // Written by the thread; read after it was joined.
  std::atomic<bool> finished{false};
  std::thread thread;

  void Main() noexcept {
    pthread_setname_np(pthread_self(), options.name.substr(0, 15).c_str());
    if (options.cpu >= 0 && !PinThisThread(options.cpu)) {
      LogWarning("thread '{}' may not be pinned to cpu {}; it runs unpinned", options.name,
                 options.cpu);
    }
    try {
      function();
    } catch (...) {
      failure = std::current_exception();
    }
    finished.store(true, std::memory_order_release);
  }
};

Thread::Thread() = default;

Thread::Thread(ThreadOptions options, std::function<void()> function)
    : state_(std::make_unique<State>()) {
  state_->options = std::move(options);
  state_->function = std::move(function);
  try {
    state_->thread = std::thread(&State::Main, state_.get());
  } catch (const std::system_error& error) {
    throw Unavailable("cannot start thread '{}': {}", state_->options.name, error.what());
  }
}

Thread::Thread(Thread&&) noexcept = default;

Thread& Thread::operator=(Thread&& other) noexcept {
  if (this != &other) {
    Thread previous(std::move(*this));  // Joins when it goes.
    state_ = std::move(other.state_);
  }
  return *this;
}

Thread::~Thread() {
  try {
    Join();
  } catch (const std::exception& error) {
    LogError("nobody joined a thread that failed: {}", error.what());
  }
}

void Thread::Join() {
  if (!joinable()) return;
  state_->thread.join();
  if (state_->failure == nullptr) return;
  const std::exception_ptr failure = std::exchange(state_->failure, nullptr);
  try {
    std::rethrow_exception(failure);
  } catch (...) {
    throw WithContext(TranslateCurrentException(), fmt::format("thread '{}'", name()));
  }
}

bool Thread::joinable() const { return state_ != nullptr && state_->thread.joinable(); }

bool Thread::finished() const {
  return state_ == nullptr || state_->finished.load(std::memory_order_acquire);
}

const std::string& Thread::name() const {
  static const std::string none;
  return state_ == nullptr ? none : state_->options.name;
}

}  // namespace menger
