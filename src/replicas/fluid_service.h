#ifndef TESSERA_SRC_REPLICAS_FLUID_SERVICE_H_
#define TESSERA_SRC_REPLICAS_FLUID_SERVICE_H_

#include <optional>

#include "absl/status/statusor.h"
#include "tessera/replicas/decide_replicas.h"

namespace tessera {

// Requests that wait for either role.
struct Backlog {
  double prefill = 0;
  double decode = 0;
};

// What a tick was like.
struct TickLatency {
  double ttft = 0;
  double itl = 0;
  double waiting_prompts = 0;  // on average, in front of all prefill engines
  double sequences = 0;        // of one decode engine
};

// Prefill and decode engines of a service under a fluid load; see `ReplayService`.
class FluidService {
 public:
  // kInvalidArgument: aggregated engines, or a profile that its factory rejects.
  static absl::StatusOr<FluidService> Create(const ServiceSpec& spec);

  // One tick of `seconds` with `ready` engines, which changes what waits.
  TickLatency Serve(const ServiceLoad& load, const ReplicaCounts& ready, double seconds,
                    Backlog& backlog) const;

 private:
  FluidService(const ServiceSpec& spec, LinearEngines linear)
      : sla_(spec.sla),
        limits_(spec.limits),
        linear_(std::move(linear)),
        decode_cost_(spec.decode.iteration) {}
  double PromptSeconds(double tokens) const;
  double Ttft(double tokens) const;
  double Itl(double sequences, double context) const;
  double MostSequences(double context) const;
  double SequencesFor(double tokens_per_second, double context) const;
  double ServePrompts(const ServiceLoad& load, double engines, double seconds, double& waiting,
                      TickLatency& latency) const;
  void ServeTokens(const ServiceLoad& load, double arrived, double engines, double seconds,
                   double& waiting, TickLatency& latency) const;

  Sla sla_;
  EngineLimits limits_;
  LinearEngines linear_;
  std::optional<IterationCost> decode_cost_;
  std::optional<ProfiledEngines> profiled_;
  std::optional<DecodeProfile> decode_profile_;
};

}  // namespace tessera

#endif  // TESSERA_SRC_REPLICAS_FLUID_SERVICE_H_
