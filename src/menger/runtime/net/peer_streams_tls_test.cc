#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>

#include "menger/base/temporary_folder.h"
#include "menger/runtime/net/peer_stream_testing.h"
#include "menger/runtime/net/peer_streams.h"

namespace menger {
namespace {

using testing::HasSubstr;

constexpr const char* kAnyPort = "127.0.0.1:0";

struct Closer {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using Key = std::unique_ptr<EVP_PKEY, Closer>;
using Certificate = std::unique_ptr<X509, Closer>;

// Who signs certificates, and for whom; in files.
class Authority {
 public:
  Authority(const TemporaryFolder& folder, std::string name)
      : folder_(folder), name_(std::move(name)), key_(EVP_EC_gen("P-256")) {
    own_ = Make(key_.get(), name_, X509_get_subject_name(MakeNamed(name_).get()));
    Write(own_.get(), nullptr, file());
  }

  std::string file() const { return folder_ / (name_ + ".pem"); }

  // A certificate for the next `seconds`; less than 0: it was one until so long ago.
  TlsFiles FilesFor(const std::string& node, const Authority& trusted,
                    int seconds = 24 * 3600) const {
    const Key key(EVP_EC_gen("P-256"));
    const Certificate certificate =
        Make(key.get(), node, X509_get_subject_name(own_.get()), seconds);
    TlsFiles files{.certificate = folder_ / (node + "-certificate.pem"),
                   .key = folder_ / (node + "-key.pem"),
                   .authorities = trusted.file()};
    Write(certificate.get(), nullptr, files.certificate);
    Write(nullptr, key.get(), files.key);
    return files;
  }

 private:
  static Certificate MakeNamed(const std::string& name) {
    Certificate made(X509_new());
    X509_NAME_add_entry_by_txt(X509_get_subject_name(made.get()), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
    return made;
  }
  Certificate Make(EVP_PKEY* key, const std::string& name, const X509_NAME* issuer,
                   int seconds = 24 * 3600) const {
    Certificate made = MakeNamed(name);
    X509_set_version(made.get(), X509_VERSION_1);
    X509_gmtime_adj(X509_getm_notBefore(made.get()), -3600);
    X509_gmtime_adj(X509_getm_notAfter(made.get()), seconds);
    X509_set_issuer_name(made.get(), issuer);
    X509_set_pubkey(made.get(), key);
    if (X509_sign(made.get(), key_.get(), EVP_sha256()) == 0) throw Internal("cannot sign");
    return made;
  }
  static void Write(X509* certificate, EVP_PKEY* key, const std::string& path) {
    const std::unique_ptr<std::FILE, Closer> file(std::fopen(path.c_str(), "w"));
    if (file == nullptr) throw FromErrno(path, errno);
    if (certificate != nullptr) PEM_write_X509(file.get(), certificate);
    if (key != nullptr) {
      PEM_write_PrivateKey(file.get(), key, nullptr, nullptr, 0, nullptr, nullptr);
    }
  }

  const TemporaryFolder& folder_;
  const std::string name_;
  const Key key_;
  Certificate own_;
};

PeerStreamOptions OptionsWith(std::uint64_t node, TlsFiles files, std::string token = "token") {
  PeerStreamOptions options = OptionsOfNode(node, std::move(token));
  options.tls = std::move(files);
  return options;
}

class PeerStreamsTlsTest : public testing::Test {
 protected:
  TemporaryFolder folder_{"tls-test"};
  Authority cluster_{folder_, "cluster"};
  Authority other_{folder_, "other"};
  EchoingOwner acceptor_;
  RecordingOwner connector_;
};

TEST_F(PeerStreamsTlsTest, FramesComeBackOverIt) {
  PeerStreams listening(OptionsWith(1, cluster_.FilesFor("a", cluster_)));
  PeerStreams connecting(OptionsWith(2, cluster_.FilesFor("b", cluster_)));
  connecting.Connect(listening.Listen(kAnyPort, acceptor_), PeerLane::kBulk, connector_);
  const auto stream = connector_.WaitStream();
  ASSERT_NE(stream, nullptr);
  std::vector<std::string> sent;
  for (const std::size_t bytes : {100, 1'000'000, 20'000, 3}) {
    for (int i = 0; i < 5; ++i) {
      const Payload tail = Payload::Copy(std::vector(bytes, static_cast<std::byte>('a' + i)));
      ASSERT_TRUE(stream->TrySend(BytesOf("a:"), tail));
      sent.push_back("a:" + TextOf(tail.bytes()));
    }
    ASSERT_TRUE(connector_.WaitFrames(sent.size()) == sent);
  }
  stream->Close();
  const auto there = acceptor_.WaitEnded();
  ASSERT_TRUE(there);
  EXPECT_EQ(there->code(), ErrorCode::kUnavailable);
}

TEST_F(PeerStreamsTlsTest, ACertificateOfAnotherAuthorityIsRefusedOnEitherSide) {
  const TlsFiles right = cluster_.FilesFor("a", cluster_);
  const TlsFiles wrong = other_.FilesFor("b", cluster_);
  std::size_t times = 0;
  for (const auto& [first, second] : {std::pair(right, wrong), {wrong, right}}) {
    PeerStreams listening(OptionsWith(1, first));
    PeerStreams connecting(OptionsWith(2, second));
    connecting.Connect(listening.Listen(kAnyPort, acceptor_), PeerLane::kControl, connector_);
    const auto here = connector_.WaitFailed(times);
    const auto there = acceptor_.WaitFailed(times);
    ASSERT_TRUE(here && there);
    EXPECT_EQ(here->code(), ErrorCode::kFailedPrecondition) << here->what();
    EXPECT_EQ(there->code(), ErrorCode::kFailedPrecondition) << there->what();
    const Error& refused = times == 0 ? *here : *there;  // "b" is the wrong one.
    const Error& refuses = times == 0 ? *there : *here;
    EXPECT_THAT(refused.what(), HasSubstr("from no authority that the other end has"));
    EXPECT_THAT(refuses.what(), HasSubstr("the other end's certificate is refused"));
    ++times;
  }
  EXPECT_EQ(connector_.opened() + acceptor_.opened(), 0U);
}

TEST_F(PeerStreamsTlsTest, OnesOwnCertificateThatHasExpiredIsNamed) {
  try {
    const PeerStreams service(OptionsWith(1, cluster_.FilesFor("late", cluster_, -60)));
    FAIL() << "it was taken";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("late-certificate.pem' cannot be used"));
    EXPECT_THAT(error.what(), HasSubstr("it has expired"));
  }
}

TEST_F(PeerStreamsTlsTest, WhoseCertificateHasExpiredIsTold) {
  PeerStreams listening(OptionsWith(1, cluster_.FilesFor("a", cluster_)));
  PeerStreams connecting(OptionsWith(2, cluster_.FilesFor("b", cluster_, 4)));
  std::this_thread::sleep_for(std::chrono::seconds(6));
  connecting.Connect(listening.Listen(kAnyPort, acceptor_), PeerLane::kControl, connector_);
  const auto here = connector_.WaitFailed();
  ASSERT_TRUE(here);
  EXPECT_EQ(here->code(), ErrorCode::kFailedPrecondition);
  EXPECT_THAT(here->what(), HasSubstr("this process's certificate (tls.certificate): it has"));
}

TEST_F(PeerStreamsTlsTest, AWrongTokenIsRefusedInsideOfIt) {
  PeerStreams listening(OptionsWith(1, cluster_.FilesFor("a", cluster_)));
  PeerStreams connecting(OptionsWith(2, cluster_.FilesFor("b", cluster_), "wrong"));
  connecting.Connect(listening.Listen(kAnyPort, acceptor_), PeerLane::kControl, connector_);
  const auto here = connector_.WaitFailed();
  const auto there = acceptor_.WaitFailed();
  ASSERT_TRUE(here && there);
  EXPECT_THAT(here->what(), HasSubstr("another cluster token"));
  EXPECT_THAT(there->what(), HasSubstr("another cluster token"));
}

TEST_F(PeerStreamsTlsTest, OneEndWithoutItIsRefused) {
  std::size_t times = 0;
  for (const bool listens_with : {true, false}) {
    PeerStreamOptions with = OptionsWith(1, cluster_.FilesFor("a", cluster_));
    PeerStreamOptions without = OptionsWith(2, {});
    PeerStreams listening(listens_with ? with : without);
    PeerStreams connecting(listens_with ? without : with);
    connecting.Connect(listening.Listen(kAnyPort, acceptor_), PeerLane::kControl, connector_);
    const auto here = connector_.WaitFailed(times);
    const auto there = acceptor_.WaitFailed(times);
    ASSERT_TRUE(here && there);
    const std::string said = std::string(here->what()) + there->what();
    EXPECT_THAT(said,
                HasSubstr(listens_with ? "perhaps because it wants TLS"
                                       : "it speaks TLS, and this node was given no certificate"));
    EXPECT_THAT(said, HasSubstr("the other end does not use TLS"));
    ++times;
  }
}

TEST_F(PeerStreamsTlsTest, FilesThatCannotBeUsedAreNamed) {
  const TlsFiles right = cluster_.FilesFor("a", cluster_);
  for (std::string TlsFiles::*file :
       {&TlsFiles::certificate, &TlsFiles::key, &TlsFiles::authorities}) {
    TlsFiles files = right;
    files.*file = folder_ / "missing.pem";
    try {
      const PeerStreams service(OptionsWith(1, files));
      FAIL() << "it was taken";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::kInvalidArgument);
      EXPECT_THAT(error.what(), HasSubstr("missing.pem"));
    }
  }
}

}  // namespace
}  // namespace menger
