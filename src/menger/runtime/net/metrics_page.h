#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

namespace menger {

struct MetricsPageOptions {
  std::size_t request_bytes_max = std::size_t{8} << 10;  // With all headers.
  std::size_t visits_max = 32;                   // At a time; who comes then waits to be let in.
  std::chrono::milliseconds request_max{2'000};  // Until the request has come whole,
  std::chrono::milliseconds visit_max{10'000};   // and until its answer was read.
};

// Metrics over HTTP, for Prometheus: answers GET /metrics, and says no to all else. Nobody is asked
// who he is and nothing is encrypted, so it belongs at loopback, or in a network of its own.
//
// One request a connection, of which only the first line is looked at. A visitor costs the few
// kilobytes that he may send, however slowly, and is sent away at the deadlines.
class MetricsPage {
 public:
  // `text`: what the page shows, in Prometheus's text format; called on the page's own thread. What
  // it throws is answered by 500. Throws InvalidArgument for what is no HOST:PORT, and as
  // PeerStreams::Listen.
  MetricsPage(const std::string& address, std::function<std::string()> text,
              MetricsPageOptions options = {});
  ~MetricsPage();  // `text` is not called any longer.
  MetricsPage(const MetricsPage&) = delete;
  MetricsPage& operator=(const MetricsPage&) = delete;

  const std::string& address() const;  // With the port that it has.

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace menger
