#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <span>

#include "menger/runtime/cluster/store_codec.h"
#include "menger/runtime/control/control_store.h"
#include "menger/runtime/net/peer_stream.h"

namespace menger {

struct StoreServerOptions {
  std::size_t frame_bytes_max = std::size_t{8} << 20;  // At least 16 KiB.
  // Of one stream: what the store has not answered yet. What is more is answered by Unavailable.
  std::size_t requests_max = 2048;
  std::size_t request_bytes_max = std::size_t{128} << 20;
  std::size_t watches_max = 1024;  // Likewise.
  // Answers that find no room in the stream, since its client does not read them: who has more of
  // them loses the stream.
  std::size_t waiting_bytes_max = std::size_t{16} << 20;
};

// Serves a control store to other processes, over streams of lane kStore that somebody else has: he
// passes on here what he is told of them, and nothing of other lanes.
//
// Of a page at most 256 records are given at once, and no more than a frame may have.
//
// The four functions below are all called by the one thread of the streams. The store completes on
// any thread, also after a stream has ended or this is gone; the store outlives this.
class StoreServer {
 public:
  // Throws InvalidArgument for options that are wrong.
  explicit StoreServer(ControlStore& store, StoreServerOptions options = {});
  // Closes the streams that are still open. None of the functions runs or is called any more.
  ~StoreServer();
  StoreServer(const StoreServer&) = delete;
  StoreServer& operator=(const StoreServer&) = delete;

  // As PeerStreamOwner's.
  void Opened(std::shared_ptr<PeerStream> stream);
  // Throws InvalidArgument for what is no request, which ends the stream.
  void Arrived(PeerStream& stream, std::span<const std::span<const std::byte>> frames);
  void HasRoom(PeerStream& stream);
  void Ended(PeerStream& stream);

 private:
  class Client;
  // By number. Apart from the client: what they hint to, they have a share of.
  using Watches = std::map<std::uint64_t, std::unique_ptr<StoreWatch>>;
  struct Served {
    std::shared_ptr<Client> client;
    Watches watches;
  };

  void Take(Served& served, StoreRequest request, std::size_t bytes);
  void Submit(Served& served, StoreRequest request, std::size_t bytes);
  void Scan(Served& served, StoreRequest request, std::size_t bytes);
  void Watch(Served& served, StoreRequest request);

  ControlStore& store_;
  const StoreServerOptions options_;
  std::map<const PeerStream*, Served> served_;
};

}  // namespace menger
