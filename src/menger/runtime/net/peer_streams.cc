#include "menger/runtime/net/peer_streams.h"

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/post.hpp>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "menger/base/error.h"
#include "menger/base/log.h"
#include "menger/base/thread.h"
#include "menger/runtime/net/connector.h"
#include "menger/runtime/net/listener.h"
#include "menger/runtime/net/session.h"
#include "menger/runtime/net/transport.h"

namespace menger {
namespace {

PeerStreamOptions Checked(PeerStreamOptions options) {
  CheckPeerStreamOptions(options);
  return options;
}

}  // namespace

class PeerStreams::State {
 public:
  explicit State(PeerStreamOptions options)
      : options_(Checked(std::move(options))),
        loop_(std::make_shared<asio::io_context>(1)),
        work_(loop_->get_executor()) {
    if (options_.tls.given()) tls_ = std::make_unique<TlsContext>(options_.tls);
    thread_ = Thread({.name = "streams"}, [this] { Run(); });
  }

  ~State() {
    asio::post(*loop_, [this] { CloseAll(); });
    work_.reset();
    thread_.Join();
  }

  State(const State&) = delete;
  State& operator=(const State&) = delete;

  void SetEpoch(std::uint64_t epoch) {
    asio::post(*loop_, [this, epoch] { options_.own.epoch = epoch; });
  }

  std::string Listen(const std::string& address, PeerStreamOwner& owner) {
    const NodeAddress parsed = ParseNodeAddress(address, options_);
    const auto listener =
        std::make_shared<Listener>(*loop_, parsed, address, options_.greetings_max);
    asio::post(*loop_, [this, listener, &owner] {
      if (closing_) return listener->Close();
      listeners_.push_back(listener);
      listener->Start([this, listener = listener.get(), &owner](asio::ip::tcp::socket socket,
                                                                const std::string& from) {
        Begin(std::move(socket), {.side = Handshake::Side::kAcceptor,
                                  .address = from,
                                  .owner = &owner,
                                  .on_greeted = [listener] { listener->Greeted(); }});
      });
    });
    return listener->address();
  }

  void Connect(const std::string& address, PeerLane lane, PeerStreamOwner& owner) {
    const NodeAddress parsed = ParseNodeAddress(address, options_);
    asio::post(*loop_, [this, address, parsed, lane, &owner] {
      if (closing_) return;
      auto connector = std::make_shared<Connector>(
          *loop_, parsed, address,
          [this, address, lane, &owner](std::optional<asio::ip::tcp::socket> socket,
                                        const Error* why) {
            ForgetDone();
            if (why != nullptr) return owner.Failed(address, *why);
            Begin(std::move(*socket), {.side = Handshake::Side::kConnector,
                                       .lane = lane,
                                       .address = address,
                                       .owner = &owner,
                                       .on_greeted = [] {}});
          });
      connectors_.push_back({connector, address, &owner});
      connector->Start(options_.connect_max);
    });
  }

 private:
  struct Connecting {
    std::shared_ptr<Connector> connector;
    std::string address;
    PeerStreamOwner* owner = nullptr;
  };

  // What an owner throws where he may not is told, and costs nobody else his streams.
  void Run() {
    for (;;) {
      try {
        loop_->run();
        return;
      } catch (...) {
        LogError("a call of the streams between nodes failed: {}",
                 TranslateCurrentException().what());
      }
    }
  }

  void Begin(asio::ip::tcp::socket socket, Session::Parts parts) {
    parts.loop = loop_;
    parts.transport = MakeTransport(std::move(socket), tls_.get(), parts.side);
    parts.on_over = [this](const Session& session) {
      std::erase_if(sessions_, [&session](const auto& each) { return each.get() == &session; });
    };
    sessions_.push_back(std::make_shared<Session>(options_, std::move(parts)));
    sessions_.back()->Start();
  }

  void ForgetDone() {
    std::erase_if(connectors_, [](const Connecting& each) { return each.connector->done(); });
  }

  void CloseAll() {
    closing_ = true;
    for (const auto& listener : listeners_) listener->Close();
    for (const Connecting& each : std::exchange(connectors_, {})) {
      each.connector->Close();
      each.owner->Failed(each.address, Cancelled("this end has closed all its streams"));
    }
    for (const auto& session : std::vector(sessions_)) session->Abandon();
  }

  PeerStreamOptions options_;  // Of them the epoch is the thread's; the others stay.
  std::unique_ptr<TlsContext> tls_;
  // Shared: streams that somebody still holds outlive the service, but not this.
  const std::shared_ptr<asio::io_context> loop_;
  asio::executor_work_guard<asio::io_context::executor_type> work_;

  // Of the thread.
  bool closing_ = false;
  std::vector<std::shared_ptr<Listener>> listeners_;
  std::vector<Connecting> connectors_;
  std::vector<std::shared_ptr<Session>> sessions_;

  Thread thread_;  // The last: what it uses is there before it, and goes after.
};

PeerStreams::PeerStreams(PeerStreamOptions options)
    : state_(std::make_unique<State>(std::move(options))) {}

PeerStreams::~PeerStreams() = default;

void PeerStreams::SetEpoch(std::uint64_t epoch) { state_->SetEpoch(epoch); }

std::string PeerStreams::Listen(const std::string& address, PeerStreamOwner& owner) {
  return state_->Listen(address, owner);
}

void PeerStreams::Connect(const std::string& address, PeerLane lane, PeerStreamOwner& owner) {
  state_->Connect(address, lane, owner);
}

}  // namespace menger
