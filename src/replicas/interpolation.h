#ifndef TESSERA_SRC_REPLICAS_INTERPOLATION_H_
#define TESSERA_SRC_REPLICAS_INTERPOLATION_H_

#include <algorithm>

namespace tessera {

// The value at `x` of the line through (x0, y0) and (x1, y1), x0 < x1, which is never
// outside of y0..y1, so that adjoining lines meet in spite of rounding; that of the nearer
// end for an `x` outside of x0..x1.
inline double OnLine(double x, double x0, double y0, double x1, double y1) {
  const double part = std::clamp((x - x0) / (x1 - x0), 0.0, 1.0);
  return std::clamp(y0 + part * (y1 - y0), std::min(y0, y1), std::max(y0, y1));
}

// Two real numbers count as equal within this part of either.
inline constexpr double kRounding = 1e-9;

// Whether a latency keeps a limit; a tie that only rounding breaks does.
inline bool Keeps(double latency, double limit) { return latency <= limit * (1 + kRounding); }

}  // namespace tessera

#endif  // TESSERA_SRC_REPLICAS_INTERPOLATION_H_
