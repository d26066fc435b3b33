// How fast are the convolutional networks on this CPU, and what is there to choose from? Nature's
// network (uint8 [4, 84, 84] in; 6 logits and a value out): acting, and learning without loss and
// optimiser (parameters changed, Forward, Backward), by rows, threads and implementation:
//
//   plain fp32    libtorch as its manual shows it: a module, autograd, planes of pixels
//   libtorch X    the same with channels last, in fp32 and bf16
//   torch X       Menger's networks on libtorch
//   menger bf16   Menger's own kernels, where the processor has AVX512-BF16
//
// Milliseconds are the best of several rounds; ratios are to plain fp32. Times of two threads mean
// little while anything else runs. Usage: bench_cnn [seconds a measurement, default .3] [kind]
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/tensor.h>
#include <c10/core/InferenceMode.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/autograd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "menger/networks/cnn.h"
#include "menger/networks/torch/torch_network.h"

namespace menger {
namespace {

constexpr int kMostRows = 1024;
constexpr int kActions = 6;

NetworkSpec SpecOf(const std::string& kind, const std::string& precision) {
  NetworkSpec spec;
  spec.options.kind = kind;
  spec.observation = LeafSpec::Box("observation", DataType::kUint8, {4, 84, 84}, {0}, {255});
  spec.heads = {{.name = "policy", .width = kActions, .gain = 0.01}, {.name = "value", .width = 1}};
  spec.precision = precision;
  return spec;
}

// Frames and gradients that all implementations are given.
struct Data {
  Data() : pixels(static_cast<std::size_t>(kMostRows) * 4 * 84 * 84), gradients(kMostRows * 7) {
    Random random = Random::FromSeed(5);
    for (std::size_t i = 0; i < 4 * 84 * 84 * 8; ++i) {
      pixels[i] = static_cast<std::uint8_t>(random.Integers(0, 256));
    }
    for (std::size_t i = 4 * 84 * 84 * 8; i < pixels.size(); ++i) {
      pixels[i] = pixels[i - 4 * 84 * 84 * 8 + 97 * (i % 2)];
    }
    for (float& gradient : gradients) gradient = static_cast<float>(random.Normal());
  }
  std::vector<std::uint8_t> pixels;
  std::vector<float> gradients;
};

// One way of computing the network, made for some threads.
class Candidate {
 public:
  virtual ~Candidate() = default;
  virtual void Act(int rows) = 0;
  virtual void Learn(int rows) = 0;
};

class MengerCandidate : public Candidate {
 public:
  MengerCandidate(std::unique_ptr<Network> network, Data& data)
      : network_(std::move(network)), data_(data) {}

  void Act(int rows) override {
    network_->Infer({.observations = data_.pixels.data(), .rows = rows});
  }

  void Learn(int rows) override {
    network_->ParametersChanged();
    network_->Forward({.observations = data_.pixels.data(), .rows = rows});
    float* const gradients = data_.gradients.data();
    const Matrix matrices[] = {{gradients, rows, kActions, kActions},
                               {gradients + rows * kActions, rows, 1, 1}};
    network_->Backward(matrices);
  }

 private:
  const std::unique_ptr<Network> network_;
  Data& data_;
};

class LibtorchCandidate : public Candidate {
 public:
  // The weights are those of `network`.
  LibtorchCandidate(Network& network, at::ScalarType type, bool channels_last, int threads,
                    Data& data)
      : type_(type), channels_last_(channels_last), threads_(threads), data_(data) {
    for (const ParameterEntry& entry : network.manifest().entries()) {
      at::Tensor weight = at::from_blob(network.parameters().data() + entry.offset,
                                        at::IntArrayRef(entry.shape), at::kFloat)
                              .clone()
                              .to(type);
      if (channels_last && weight.dim() == 4) {
        weight = weight.contiguous(at::MemoryFormat::ChannelsLast);
      }
      weights_.push_back(weight.requires_grad_(true));
    }
    stride_ = {4, 2, 1};
  }

  void Act(int rows) override {
    at::set_num_threads(threads_);
    const c10::InferenceMode inference(true);
    Run(rows);
  }

  void Learn(int rows) override {
    at::set_num_threads(threads_);
    const std::vector<at::Tensor> outputs = Run(rows);
    float* const gradients = data_.gradients.data();
    torch::autograd::grad(outputs, weights_,
                          {at::from_blob(gradients, {rows, kActions}, at::kFloat).to(type_),
                           at::from_blob(gradients, {rows, 1}, at::kFloat).to(type_)});
  }

 private:
  std::vector<at::Tensor> Run(int rows) {
    at::Tensor x = at::from_blob(data_.pixels.data(), {rows, 4, 84, 84}, at::kByte).to(type_);
    if (channels_last_) x = x.contiguous(at::MemoryFormat::ChannelsLast);
    x = x.div(255.0);
    std::size_t i = 0;
    for (; weights_[i].dim() == 4; i += 2) {
      x = at::conv2d(x, weights_[i], weights_[i + 1], stride_[i / 2]).relu();
    }
    x = at::addmm(weights_[i + 1], x.flatten(1), weights_[i]).relu();
    return {at::addmm(weights_[i + 3], x, weights_[i + 2]),
            at::addmm(weights_[i + 5], x, weights_[i + 4])};
  }

  const at::ScalarType type_;
  const bool channels_last_;
  const int threads_;
  Data& data_;
  std::vector<at::Tensor> weights_;
  std::vector<std::int64_t> stride_;
};

double BestMilliseconds(double seconds, const std::function<void()>& function) {
  using Clock = std::chrono::steady_clock;
  function();
  double best = HUGE_VAL;
  const auto start = Clock::now();
  for (int round = 0;
       round < 3 || std::chrono::duration<double>(Clock::now() - start).count() < seconds;
       ++round) {
    const auto begin = Clock::now();
    function();
    best = std::min(best, std::chrono::duration<double, std::milli>(Clock::now() - begin).count());
  }
  return best;
}

struct Entry {
  const char* name;
  std::unique_ptr<Candidate> candidate;
};

std::vector<Entry> MakeCandidates(const std::string& kind, int threads, Data& data) {
  Random random = Random::FromSeed(1);
  const NetworkSpec fp32 = SpecOf(kind, "fp32");
  const NetworkSpec bf16 = SpecOf(kind, "bf16");
  const auto torch = [&](const NetworkSpec& spec) {
    return std::unique_ptr<Network>(menger_make_torch_network(&spec, &random, threads));
  };
  const auto ours = [&](std::unique_ptr<Network> network) {
    return std::make_unique<MengerCandidate>(std::move(network), data);
  };
  const auto weights = torch(fp32);
  const auto plain = [&](at::ScalarType type, bool channels_last) {
    return std::make_unique<LibtorchCandidate>(*weights, type, channels_last, threads, data);
  };
  std::vector<Entry> entries;
  entries.push_back({"plain fp32", plain(at::kFloat, false)});
  entries.push_back({"libtorch fp32", plain(at::kFloat, true)});
  entries.push_back({"libtorch bf16", plain(at::kBFloat16, true)});
  entries.push_back({"torch fp32", ours(torch(fp32))});
  entries.push_back({"torch bf16", ours(torch(bf16))});
  if (HasAvx512Bf16()) {
    entries.push_back({"menger bf16", ours(std::make_unique<CnnNetwork>(bf16, random, threads))});
  }
  return entries;
}

void PrintTable(const std::string& kind, int threads, double seconds, Data& data) {
  struct Column {
    bool learn;
    int rows;
  };
  static constexpr Column kColumns[] = {{false, 1},   {false, 8},  {false, 32}, {false, 64},
                                        {false, 256}, {true, 256}, {true, 512}, {true, 1024}};
  std::string header = fmt::format("| {}, {} thread(s), ms |", kind, threads);
  std::string rule = "| --- |";
  for (const Column& column : kColumns) {
    header += fmt::format(" {} {} |", column.learn ? "learn" : "act", column.rows);
    rule += " --- |";
  }
  fmt::print("{}\n{}\n", header, rule);
  std::vector<double> plain;
  for (const Entry& entry : MakeCandidates(kind, threads, data)) {
    std::string line = fmt::format("| {} |", entry.name);
    const bool first = plain.size() < std::size(kColumns);
    for (std::size_t i = 0; i < std::size(kColumns); ++i) {
      const Column& column = kColumns[i];
      const double time = BestMilliseconds(seconds, [&] {
        column.learn ? entry.candidate->Learn(column.rows) : entry.candidate->Act(column.rows);
      });
      if (first) plain.push_back(time);
      line += fmt::format(" {:.2f} ({:.1f}x) |", time, plain[i] / time);
    }
    fmt::print("{}\n", line);
    std::fflush(stdout);
  }
}

}  // namespace
}  // namespace menger

int main(int count, char** arguments) {
  const double seconds = count > 1 ? std::atof(arguments[1]) : 0.3;
  const std::string kind = count > 2 ? arguments[2] : "nature_cnn";
  menger::Data data;
  for (const int threads : {1, 2}) menger::PrintTable(kind, threads, seconds, data);
  return 0;
}
