#include "tessera/cluster/gang.h"

#include <utility>

namespace tessera {

GpuRequest GpuRequest::Whole(int devices) {
  GpuRequest request;
  request.kind = GpuRequestKind::kWhole;
  request.devices = devices;
  return request;
}

GpuRequest GpuRequest::Fraction(int64_t share, int devices) {
  GpuRequest request;
  request.kind = GpuRequestKind::kFraction;
  request.devices = devices;
  request.share = share;
  return request;
}

GpuRequest GpuRequest::Memory(int64_t bytes, int devices) {
  GpuRequest request;
  request.kind = GpuRequestKind::kDeviceMemory;
  request.devices = devices;
  request.memory = bytes;
  return request;
}

GpuRequest GpuRequest::Profile(std::string name) {
  std::vector<std::string> names;
  names.push_back(std::move(name));
  return Profiles(std::move(names));
}

GpuRequest GpuRequest::Profiles(std::vector<std::string> names) {
  GpuRequest request;
  request.kind = GpuRequestKind::kProfile;
  request.devices = 1;
  request.profiles = std::move(names);
  return request;
}

GpuRequest GpuRequest::Requirement(SliceRequirement requirement) {
  GpuRequest request;
  request.kind = GpuRequestKind::kRequirement;
  request.devices = 1;
  request.requirement = requirement;
  return request;
}

}  // namespace tessera
