#include "src/replicas/robust_fit.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

namespace tessera {
namespace {

constexpr int kSubsets = 500;
// A pivot below this part of its term's weight is what rounding left of zero.
constexpr double kSingular = 1e-10;
// A normal deviation in medians of absolute deviations, and how many of them still belong.
constexpr double kDeviation = 1.4826;
constexpr double kBelongs = 4;
// Deviations below this part of the median value do not tell samples apart.
constexpr double kExact = 1e-6;

// Normal equations of a weighted least squares problem, of which they are the sums.
class NormalEquations {
 public:
  explicit NormalEquations(std::span<const size_t> uses) : uses_(uses) {}

  void Add(const Observation& observation) {
    for (size_t i = 0; i < uses_.size(); ++i) {
      const double term = observation.terms[uses_[i]];
      for (size_t j = 0; j < uses_.size(); ++j) matrix_[i][j] += term * observation.terms[uses_[j]];
      matrix_[i][kMaxTerms] += term * observation.value;
    }
  }

  // By Gaussian elimination: the matrix is symmetric and not negative, so that the
  // diagonal serves as pivot. None if it is singular.
  std::optional<Terms> Solve() const {
    auto m = matrix_;
    const size_t n = uses_.size();
    for (size_t i = 0; i < n; ++i) {
      if (!(m[i][i] > kSingular * matrix_[i][i])) return std::nullopt;
      for (size_t row = i + 1; row < n; ++row) {
        const double part = m[row][i] / m[i][i];
        for (size_t j = i; j < n; ++j) m[row][j] -= part * m[i][j];
        m[row][kMaxTerms] -= part * m[i][kMaxTerms];
      }
    }
    Terms solution{};
    for (size_t i = n; i-- > 0;) {
      double rest = m[i][kMaxTerms];
      for (size_t j = i + 1; j < n; ++j) rest -= m[i][j] * solution[uses_[j]];
      solution[uses_[i]] = rest / m[i][i];
    }
    return solution;
  }

 private:
  std::span<const size_t> uses_;
  std::array<std::array<double, kMaxTerms + 1>, kMaxTerms> matrix_{};
};

double Deviation(const Observation& observation, const Terms& fit) {
  double value = 0;
  for (size_t i = 0; i < kMaxTerms; ++i) value += fit[i] * observation.terms[i];
  return std::abs(observation.value - value);
}

// How far a fit is from the nearer half of the observations.
struct Nearness {
  double sum = 0;     // of the weighted deviations in the half
  double median = 0;  // the largest of them
};

Nearness NearerHalf(std::span<const Observation> observations, const Terms& fit) {
  std::vector<std::pair<double, double>> deviations;  // and weights
  deviations.reserve(observations.size());
  double rest = 0;
  for (const Observation& o : observations) {
    deviations.emplace_back(Deviation(o, fit), o.weight);
    rest += o.weight / 2;
  }
  std::sort(deviations.begin(), deviations.end());
  Nearness nearness;
  for (const auto& [deviation, weight] : deviations) {
    nearness.sum += weight * deviation;
    nearness.median = deviation;
    rest -= weight;
    if (rest <= 0) break;
  }
  return nearness;
}

// The first fit through as many observations as it has terms that comes closest to half of all.
std::optional<Terms> BestSubset(std::span<const Observation> observations,
                                std::span<const size_t> uses) {
  std::optional<Terms> best;
  double least = 0;
  uint64_t state = 1;
  for (int k = 0; k < kSubsets; ++k) {
    NormalEquations equations(uses);
    for (size_t i = 0; i < uses.size(); ++i) {
      // Knuth's MMIX generator, always from the same seed.
      state = state * 6364136223846793005u + 1442695040888963407u;
      equations.Add(observations[(state >> 33) % observations.size()]);
    }
    const std::optional<Terms> fit = equations.Solve();
    if (!fit) continue;
    const double sum = NearerHalf(observations, *fit).sum;
    if (!best || sum < least) {
      best = fit;
      least = sum;
    }
  }
  return best;
}

double MedianValue(std::span<const Observation> observations) {
  std::vector<double> values;
  for (const Observation& o : observations) values.push_back(o.value);
  const auto median = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), median, values.end());
  return *median;
}

}  // namespace

std::optional<Terms> RobustFit(std::span<const Observation> observations,
                               std::span<const size_t> uses) {
  std::optional<Terms> fit = BestSubset(observations, uses);
  if (!fit) return std::nullopt;
  const double exact = kExact * MedianValue(observations);
  // Least squares widen what is near, once more than the subset did.
  for (int round = 0; round < 2; ++round) {
    const double median = NearerHalf(observations, *fit).median;
    const double limit = kBelongs * kDeviation * median + exact;
    NormalEquations equations(uses);
    for (const Observation& o : observations) {
      if (Deviation(o, *fit) <= limit) equations.Add(o);
    }
    const std::optional<Terms> refit = equations.Solve();
    if (!refit) return std::nullopt;
    fit = refit;
  }
  return fit;
}

}  // namespace tessera
