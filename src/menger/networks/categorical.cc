// Compiled with -O3: the loops over lanes are meant to be vectorised.
#include "menger/networks/categorical.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>

#include "menger/base/error.h"
#include "menger/networks/kernels/elementary.h"

namespace menger {
namespace {

constexpr int kLanes = 16;    // Rows that are worked on together.
constexpr int kOnStack = 32;  // Choices that fit without allocating.
constexpr float kForbidden = -std::numeric_limits<float>::infinity();
constexpr float kLowest = -200.0f;  // Stands for -infinity where a probability of 0 multiplies it.

using Lane = float[kLanes];

// Up to 16 rows of one categorical: of choice i, its logit less the row's largest, and e to that.
class Block {
 public:
  explicit Block(int largest)
      : more_(largest > kOnStack ? 2 * static_cast<std::size_t>(largest) * kLanes : 0),
        shifted_(more_.empty() ? stack_[0] : reinterpret_cast<Lane*>(more_.data())),
        weight_(more_.empty() ? stack_[1] : shifted_ + largest) {}

  // Takes choices [offset, offset + count) of rows [first, first + rows); lanes beyond repeat the
  // last row.
  void Load(const Matrix& logits, const std::uint8_t* mask, int width, int first, int rows,
            int offset, int count) {
    count_ = count;
    for (int lane = 0; lane < kLanes; ++lane) {
      const int row = first + std::min(lane, rows - 1);
      const float* const from = logits.row(row) + offset;
      if (mask == nullptr) {
        for (int i = 0; i < count; ++i) shifted_[i][lane] = from[i];
      } else {
        const std::uint8_t* const allowed =
            mask + static_cast<std::ptrdiff_t>(row) * width + offset;
        for (int i = 0; i < count; ++i) shifted_[i][lane] = allowed[i] ? from[i] : kForbidden;
      }
    }
  }

  // Turns logits into weights e^(logit - largest) and their totals. A row without any choice keeps
  // a largest logit of -infinity, and weights that mean nothing.
  void Normalise() {
    for (int lane = 0; lane < kLanes; ++lane) largest[lane] = shifted_[0][lane];
    for (int i = 1; i < count_; ++i) {
      for (int lane = 0; lane < kLanes; ++lane) {
        largest[lane] = shifted_[i][lane] > largest[lane] ? shifted_[i][lane] : largest[lane];
      }
    }
    for (int lane = 0; lane < kLanes; ++lane) total[lane] = 0;
    for (int i = 0; i < count_; ++i) {
      for (int lane = 0; lane < kLanes; ++lane) {
        const float shifted = shifted_[i][lane] - largest[lane];
        const float weight = Exp(shifted);
        shifted_[i][lane] = shifted;
        weight_[i][lane] = weight;
        total[lane] += weight;
      }
    }
    for (int lane = 0; lane < kLanes; ++lane) log_total[lane] = Log(total[lane]);
  }

  // The entropy of each row in nats.
  void Entropy(Lane& entropy) const {
    for (int lane = 0; lane < kLanes; ++lane) entropy[lane] = 0;
    for (int i = 0; i < count_; ++i) {
      for (int lane = 0; lane < kLanes; ++lane) {
        entropy[lane] = __builtin_fmaf(weight_[i][lane], Shifted(i, lane), entropy[lane]);
      }
    }
    for (int lane = 0; lane < kLanes; ++lane) {
      entropy[lane] = log_total[lane] - entropy[lane] / total[lane];
    }
  }

  // The choice in which each row's cumulated weight passes uniform * total.
  void Choose(const Lane& uniform, int (&choice)[kLanes]) const {
    Lane threshold;
    Lane sum = {};
    int last[kLanes] = {};  // The last choice that is possible at all: rounding cannot pass it.
    for (int lane = 0; lane < kLanes; ++lane) {
      threshold[lane] = uniform[lane] * total[lane];
      choice[lane] = 0;
    }
    for (int i = 0; i < count_; ++i) {
      for (int lane = 0; lane < kLanes; ++lane) {
        sum[lane] += weight_[i][lane];
        choice[lane] += sum[lane] <= threshold[lane] ? 1 : 0;
        last[lane] = weight_[i][lane] > 0 ? i : last[lane];
      }
    }
    for (int lane = 0; lane < kLanes; ++lane) choice[lane] = std::min(choice[lane], last[lane]);
  }

  float LogProbability(int choice, int lane) const {
    return shifted_[choice][lane] - log_total[lane];
  }
  float Shifted(int i, int lane) const {
    return shifted_[i][lane] < kLowest ? kLowest : shifted_[i][lane];
  }
  const Lane& weights(int i) const { return weight_[i]; }
  Lane& values(int i) { return shifted_[i]; }

  Lane largest;
  Lane total;
  Lane log_total;

 private:
  int count_ = 0;
  Lane stack_[2][kOnStack];
  std::vector<float> more_;
  Lane* shifted_;
  Lane* weight_;
};

// Word i of row l's draw goes to words[i][l].
void Draw(const CounterRandom& random, const std::uint32_t (&environment)[kLanes],
          std::int64_t step, int block, std::uint32_t (&words)[4][kLanes]) {
  for (int lane = 0; lane < kLanes; ++lane) {
    const auto drawn = random.Draw(environment[lane], static_cast<std::uint64_t>(step),
                                   static_cast<std::uint32_t>(block));
    for (int i = 0; i < 4; ++i) words[i][lane] = drawn[i];
  }
}

void CheckAllowed(const Block& block, int lane, int row, int element) {
  if (block.largest[lane] != kForbidden) return;
  throw InvalidArgument(
      "the action mask of row {} forbids every choice of element {}; it must allow one", row,
      element);
}

int CheckedAction(std::int64_t action, int count, int row, int element) {
  if (action < 0 || action >= count) {
    throw InvalidArgument("action {} of row {}, element {}, is not in [0, {})", action, row,
                          element, count);
  }
  return static_cast<int>(action);
}

}  // namespace

CategoricalDistribution::CategoricalDistribution(std::vector<int> counts)
    : counts_(std::move(counts)) {
  for (const int count : counts_) {
    width_ += count;
    largest_ = std::max(largest_, count);
  }
}

std::vector<HeadSpec> CategoricalDistribution::heads() const {
  return {{.name = "policy", .width = width_, .gain = 0.01}};
}

void CategoricalDistribution::Sample(std::span<const Matrix> outputs, const std::uint8_t* mask,
                                     const CounterRandom& random, std::span<const int> environments,
                                     std::int64_t step, void* actions,
                                     float* log_probability) const {
  const Matrix& logits = outputs[0];
  const int elements = static_cast<int>(counts_.size());
  auto* const out = static_cast<std::int64_t*>(actions);
  Block block(largest_);
  std::uint32_t words[4][kLanes];
  for (int first = 0; first < logits.rows; first += kLanes) {
    const int rows = std::min(kLanes, logits.rows - first);
    std::uint32_t environment[kLanes] = {};
    for (int lane = 0; lane < rows; ++lane) {
      environment[lane] = static_cast<std::uint32_t>(std::max(environments[first + lane], 0));
    }
    Lane sum = {};
    for (int element = 0, offset = 0; element < elements; offset += counts_[element++]) {
      block.Load(logits, mask, width_, first, rows, offset, counts_[element]);
      block.Normalise();
      if (element % 4 == 0) Draw(random, environment, step, element / 4, words);
      Lane uniform;
      for (int lane = 0; lane < kLanes; ++lane) {
        uniform[lane] = CounterRandom::Uniform01(words[element % 4][lane]);
      }
      int choice[kLanes];
      block.Choose(uniform, choice);
      for (int lane = 0; lane < rows; ++lane) {
        if (environments[first + lane] >= 0) CheckAllowed(block, lane, first + lane, element);
        out[static_cast<std::ptrdiff_t>(first + lane) * elements + element] = choice[lane];
        sum[lane] += block.LogProbability(choice[lane], lane);
      }
    }
    std::copy_n(sum, rows, log_probability + first);
  }
}

void CategoricalDistribution::Mode(std::span<const Matrix> outputs, const std::uint8_t* mask,
                                   void* actions) const {
  const Matrix& logits = outputs[0];
  auto* out = static_cast<std::int64_t*>(actions);
  for (int row = 0; row < logits.rows; ++row) {
    const float* value = logits.row(row);
    const std::uint8_t* allowed =
        mask == nullptr ? nullptr : mask + static_cast<std::ptrdiff_t>(row) * width_;
    for (const int count : counts_) {
      int best = -1;  // A row without any choice is padding, and gets 0.
      for (int i = 0; i < count; ++i) {
        if (allowed != nullptr && !allowed[i]) continue;
        if (best < 0 || value[i] > value[best]) best = i;
      }
      *out++ = std::max(best, 0);
      value += count;
      if (allowed != nullptr) allowed += count;
    }
  }
}

void CategoricalDistribution::Evaluate(std::span<const Matrix> outputs, const std::uint8_t* mask,
                                       const void* actions, float* log_probability,
                                       float* entropy) const {
  const Matrix& logits = outputs[0];
  const int elements = static_cast<int>(counts_.size());
  const auto* const taken = static_cast<const std::int64_t*>(actions);
  Block block(largest_);
  for (int first = 0; first < logits.rows; first += kLanes) {
    const int rows = std::min(kLanes, logits.rows - first);
    Lane probability_sum = {};
    Lane entropy_sum = {};
    for (int element = 0, offset = 0; element < elements; offset += counts_[element++]) {
      const int count = counts_[element];
      block.Load(logits, mask, width_, first, rows, offset, count);
      block.Normalise();
      Lane one;
      block.Entropy(one);
      for (int lane = 0; lane < rows; ++lane) {
        const int row = first + lane;
        CheckAllowed(block, lane, row, element);
        const int action = CheckedAction(
            taken[static_cast<std::ptrdiff_t>(row) * elements + element], count, row, element);
        probability_sum[lane] += block.LogProbability(action, lane);
        entropy_sum[lane] += one[lane];
      }
    }
    std::copy_n(probability_sum, rows, log_probability + first);
    std::copy_n(entropy_sum, rows, entropy + first);
  }
}

// With p the probabilities and H the entropy: d log p(a) / d logit i = [i = a] - p_i and
// dH / d logit i = -p_i (log p_i + H).
void CategoricalDistribution::Gradient(std::span<const Matrix> outputs, const std::uint8_t* mask,
                                       const void* actions,
                                       std::span<const float> log_probability_gradient,
                                       std::span<const float> entropy_gradient,
                                       std::span<const Matrix> output_gradients) const {
  const Matrix& logits = outputs[0];
  const int elements = static_cast<int>(counts_.size());
  const auto* const taken = static_cast<const std::int64_t*>(actions);
  Block block(largest_);
  for (int first = 0; first < logits.rows; first += kLanes) {
    const int rows = std::min(kLanes, logits.rows - first);
    Lane of_probability = {};
    Lane of_entropy = {};
    std::copy_n(log_probability_gradient.data() + first, rows, of_probability);
    std::copy_n(entropy_gradient.data() + first, rows, of_entropy);
    for (int element = 0, offset = 0; element < elements; offset += counts_[element++]) {
      const int count = counts_[element];
      block.Load(logits, mask, width_, first, rows, offset, count);
      block.Normalise();
      Lane entropy;
      block.Entropy(entropy);
      for (int i = 0; i < count; ++i) {
        const Lane& weight = block.weights(i);
        for (int lane = 0; lane < kLanes; ++lane) {
          const float p = weight[lane] / block.total[lane];
          const float log_p = block.Shifted(i, lane) - block.log_total[lane];
          block.values(i)[lane] =
              -p * (of_probability[lane] + of_entropy[lane] * (log_p + entropy[lane]));
        }
      }
      for (int lane = 0; lane < rows; ++lane) {
        const int row = first + lane;
        CheckAllowed(block, lane, row, element);
        float* const to = output_gradients[0].row(row) + offset;
        for (int i = 0; i < count; ++i) to[i] = block.values(i)[lane];
        to[CheckedAction(taken[static_cast<std::ptrdiff_t>(row) * elements + element], count, row,
                         element)] += of_probability[lane];
      }
    }
  }
}

}  // namespace menger
