#include "menger/runtime/net/metrics_page.h"

#include <fmt/format.h>

#include <array>
#include <asio/buffer.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#include <asio/write.hpp>
#include <string_view>
#include <utility>

#include "menger/base/error.h"
#include "menger/base/log.h"
#include "menger/base/thread.h"
#include "menger/runtime/net/listener.h"

namespace menger {
namespace {

constexpr std::string_view kEndOfHeaders = "\r\n\r\n";

std::string HttpAnswer(std::string_view status, std::string_view headers, std::string_view body) {
  return fmt::format(
      "HTTP/1.1 {}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\n"
      "Content-Length: {}\r\nConnection: close\r\n{}\r\n{}",
      status, body.size(), headers, body);
}

std::string AnswerToRequest(std::string_view request, const std::function<std::string()>& text) {
  const std::string_view line = request.substr(0, request.find("\r\n"));
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last ||
      !line.substr(last + 1).starts_with("HTTP/1.")) {
    return HttpAnswer("400 Bad Request", "", "this is no request of HTTP/1\n");
  }
  if (line.substr(0, first) != "GET") {
    return HttpAnswer("405 Method Not Allowed", "Allow: GET\r\n",
                      "only GET /metrics is answered\n");
  }
  const std::string_view target = line.substr(first + 1, last - first - 1);
  if (target.substr(0, target.find('?')) != "/metrics") {
    return HttpAnswer("404 Not Found", "", "the only page is /metrics\n");
  }
  try {
    return HttpAnswer("200 OK", "", text());
  } catch (...) {
    const Error error = TranslateCurrentException();
    return HttpAnswer("500 Internal Server Error", "", fmt::format("{}\n", error.what()));
  }
}

// One connection, until what it waits for is over. All by the loop's thread.
class PageVisit : public std::enable_shared_from_this<PageVisit> {
 public:
  PageVisit(asio::ip::tcp::socket socket, const std::function<std::string()>& text,
            const MetricsPageOptions& options, std::shared_ptr<Listener> listener)
      : socket_(std::move(socket)),
        deadline_(socket_.get_executor()),
        text_(text),
        options_(options),
        listener_(std::move(listener)) {}
  ~PageVisit() { listener_->Greeted(); }

  void Begin() {
    SetDeadline(options_.request_max);
    Read();
  }

 private:
  void SetDeadline(std::chrono::milliseconds patience) {
    deadline_.expires_after(patience);
    deadline_.async_wait([self = shared_from_this()](std::error_code error) {
      if (!error) self->Leave();
    });
  }

  void Read() {
    socket_.async_read_some(asio::buffer(room_),
                            [self = shared_from_this()](std::error_code error, std::size_t bytes) {
                              if (error) return self->Leave();
                              self->Take({self->room_.data(), bytes});
                            });
  }

  void Take(std::string_view bytes) {
    if (answered_) return Read();  // What he still says is dropped, until he has read.
    request_ += bytes;
    const std::size_t end = request_.find(kEndOfHeaders);
    if (std::min(end, request_.size()) > options_.request_bytes_max) {
      return Say(
          HttpAnswer("431 Request Header Fields Too Large", "", "the request is too long\n"));
    }
    if (end == std::string::npos) return Read();
    Say(AnswerToRequest(request_, text_));
  }

  // A socket that is closed before it was read dry would take the answer with it.
  void Say(std::string answer) {
    answered_ = true;
    answer_ = std::move(answer);
    SetDeadline(options_.visit_max);
    asio::async_write(socket_, asio::buffer(answer_),
                      [self = shared_from_this()](std::error_code error, std::size_t) {
                        if (error) return self->Leave();
                        std::error_code ignored;
                        self->socket_.shutdown(asio::ip::tcp::socket::shutdown_send, ignored);
                      });
    Read();
  }

  void Leave() {
    std::error_code ignored;
    socket_.close(ignored);
    deadline_.cancel();
  }

  asio::ip::tcp::socket socket_;
  asio::steady_timer deadline_;
  const std::function<std::string()>& text_;
  const MetricsPageOptions options_;
  const std::shared_ptr<Listener> listener_;
  std::array<char, 1024> room_{};
  std::string request_;
  std::string answer_;
  bool answered_ = false;
};

}  // namespace

class MetricsPage::State {
 public:
  State(const std::string& address, std::function<std::string()> text, MetricsPageOptions options)
      : text_(std::move(text)),
        options_(options),
        listener_(std::make_shared<Listener>(loop_, ParseHostAndPort(address), address,
                                             options.visits_max)),
        address_(listener_->address()),
        work_(asio::make_work_guard(loop_)) {
    asio::post(loop_, [this] {
      listener_->Start([this](asio::ip::tcp::socket socket, const std::string&) {
        std::make_shared<PageVisit>(std::move(socket), text_, options_, listener_)->Begin();
      });
    });
    thread_ = Thread({.name = "metrics page"}, [this] { Run(); });
  }
  ~State() {
    loop_.stop();
    thread_.Join();
    listener_->Close();  // Visits end with the loop.
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  const std::string& address() const { return address_; }

 private:
  void Run() {
    for (;;) {
      try {
        loop_.run();
        return;
      } catch (...) {
        LogError("a visit of the page of metrics failed: {}", TranslateCurrentException().what());
      }
    }
  }

  const std::function<std::string()> text_;
  const MetricsPageOptions options_;
  asio::io_context loop_;
  const std::shared_ptr<Listener> listener_;
  const std::string address_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;
  Thread thread_;
};

MetricsPage::MetricsPage(const std::string& address, std::function<std::string()> text,
                         MetricsPageOptions options)
    : state_(std::make_unique<State>(address, std::move(text), options)) {}

MetricsPage::~MetricsPage() = default;

const std::string& MetricsPage::address() const { return state_->address(); }

}  // namespace menger
