#ifndef TESSERA_BENCH_STUDY_TRAFFIC_H_
#define TESSERA_BENCH_STUDY_TRAFFIC_H_

// What the GPUs of the study are asked for.

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace tessera::study {

inline constexpr int kGpus = 100;
inline constexpr int kSlicesPerGpu = 8;  // memory slices of an A100 or H100 80 GB

// The kinds of slices that are asked for, in all arrays of the study.
inline constexpr int kKinds = 5;
enum Kind { k1g, k2g, k3g, k4g, k7g };
inline constexpr std::array<std::string_view, kKinds> kKindNames = {"1g.10gb", "2g.20gb", "3g.40gb",
                                                                    "4g.40gb", "7g.80gb"};
inline constexpr std::array<int, kKinds> kSlices = {1, 2, 4, 4, 8};  // memory slices

// How often each kind is asked for.
struct Mix {
  std::string_view name;
  std::array<int, kKinds> percent;
};
inline constexpr std::array<Mix, 4> kMixes = {{{"uniform", {20, 20, 20, 20, 20}},
                                               {"small-heavy", {40, 30, 15, 10, 5}},
                                               {"large-heavy", {5, 10, 15, 30, 40}},
                                               {"bimodal", {40, 5, 10, 5, 40}}}};

// Offered memory slices in percent of those that there are.
inline constexpr std::array<int, 4> kLoads = {70, 85, 100, 120};

struct Request {
  int kind = 0;
  double lifetime = 0;   // in mean lifetimes
  bool counted = false;  // arrives after the warm-up
};

struct Event {
  double time = 0;
  int request = 0;
  bool is_arrival = false;
};

// Requests in the order of their arrival, and all that happens in the order of time.
struct Traffic {
  std::vector<Request> requests;
  std::vector<Event> events;
};

// Poisson arrivals at `load` percent over 20 mean lifetimes, of which the first 5 warm
// up the GPUs, which start empty; exponential lifetimes. The same arguments give the
// same traffic.
Traffic MakeTraffic(const Mix& mix, int load, uint64_t seed);

}  // namespace tessera::study

#endif  // TESSERA_BENCH_STUDY_TRAFFIC_H_
