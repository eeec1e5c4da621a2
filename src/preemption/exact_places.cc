#include "src/preemption/exact_places.h"

#include <algorithm>
#include <bit>
#include <iterator>

#include "src/preemption/room_moves.h"
#include "src/preemption/room_writer.h"
#include "tessera/placement/pod_query.h"

namespace tessera {

ExactPlaces::ExactPlaces(ClusterState& state, WorkloadId w, std::span<const PodTarget> homes,
                         Account& account, absl::FunctionRef<bool()> permits, int64_t budget)
    : state_(state),
      snapshot_(state.snapshot()),
      gang_(snapshot_.gang(w)),
      first_pod_set_(snapshot_.info(w).first_pod_set),
      homes_(homes),
      account_(account),
      permits_(permits),
      budget_(budget),
      start_(state.GetMark()) {
  for (int s = 0; s < snapshot_.info(w).num_pod_sets; ++s) {
    const PodSetInfo& set = snapshot_.pod_set(PodSetId(first_pod_set_ + s));
    for (const ModelFit& fit : snapshot_.request_class(set.request_class).models) {
      if (fit.fits && std::popcount(fit.accepted()) > 1) is_least_ = false;
    }
  }
}

std::optional<ExactPlaces::Result> ExactPlaces::Run(int64_t below) {
  below_ = below;
  done_ = false;
  result_.reset();
  Expand({{0, {0, snapshot_.num_nodes()}, false}});
  return std::move(result_);
}

// --- Which pods of the claimant, and in which domains ---------------------------------------

bool ExactPlaces::Holds(int g) const {
  if (at(g).is_pod_set()) {
    return state_.standing(set_id(g)) >= snapshot_.pod_set(set_id(g)).min_count;
  }
  int holding = 0;
  for (int c = at(g).first_child; c < at(g).first_child + at(g).num_children; ++c) {
    holding += at(c).after < 0 && Holds(c) ? 1 : 0;
  }
  return holding >= at(g).min_children;
}

// Whether all pods of `g` that run are in `range`.
bool ExactPlaces::IsWithin(int g, NodeRange range) const {
  if (!at(g).is_pod_set()) {
    for (int c = at(g).first_child; c < at(g).first_child + at(g).num_children; ++c) {
      if (!IsWithin(c, range)) return false;
    }
    return true;
  }
  const PodSetInfo& set = snapshot_.pod_set(set_id(g));
  for (int i = 0; i < set.count; ++i) {
    const NodeId n = state_.placement(set.pod(i)).node;
    if (n.valid() && !range.contains(n)) return false;
  }
  return true;
}

// Does the tasks of `agenda`, the last first, in every way there is.
void ExactPlaces::Expand(std::vector<Task> agenda) {
  if (!Spend()) return;
  if (agenda.empty()) return Search();
  const Task task = agenda.back();
  agenda.pop_back();
  if (Holds(task.g)) return Expand(std::move(agenda));
  if (at(task.g).required_level >= 0 && !task.tied) return ExpandDomains(task, std::move(agenda));
  if (at(task.g).is_pod_set()) return ExpandSet(task, agenda);
  int missing = at(task.g).min_children;
  for (int c = at(task.g).first_child; c < at(task.g).first_child + at(task.g).num_children; ++c) {
    missing -= at(c).after < 0 && Holds(c) ? 1 : 0;
  }
  ExpandChoice(task, at(task.g).first_child, missing, std::move(agenda));
}

void ExactPlaces::ExpandDomains(const Task& task, std::vector<Task> agenda) {
  for (const TopologyDomain& domain : snapshot_.topology().domains(at(task.g).required_level)) {
    const NodeRange nodes = Intersect(domain.nodes, task.range);
    if (nodes.empty() || !IsWithin(task.g, domain.nodes)) continue;
    agenda.push_back({task.g, nodes, true});
    Expand(agenda);
    agenda.pop_back();
  }
}

void ExactPlaces::ExpandSet(const Task& task, const std::vector<Task>& agenda) {
  const size_t before = wanted_.size();
  const PodSetInfo& set = snapshot_.pod_set(set_id(task.g));
  int missing = set.min_count - state_.standing(set_id(task.g));
  for (int i = 0; i < set.count && missing > 0; ++i) {
    if (!MayPlace(state_, set.pod(i))) continue;
    wanted_.push_back({set.pod(i), task.range, nullptr});
    --missing;
  }
  if (missing == 0) Expand(agenda);
  wanted_.resize(before);
}

// `missing` of the children from `child` on.
void ExactPlaces::ExpandChoice(const Task& task, int child, int missing, std::vector<Task> agenda) {
  if (missing <= 0) return Expand(std::move(agenda));
  for (int c = child; c < at(task.g).first_child + at(task.g).num_children; ++c) {
    if (at(c).after >= 0 || Holds(c)) continue;
    agenda.push_back({c, task.range, false});
    ExpandChoice(task, c + 1, missing - 1, agenda);
    agenda.pop_back();
  }
}

// --- Where ----------------------------------------------------------------------------------

ExactPlaces::Size ExactPlaces::SizeOf(const Seeker& seeker) const {
  const RequestClass& request =
      snapshot_.request_class(snapshot_.pod_set(snapshot_.pod_set_of(seeker.pod)).request_class);
  Size size{0, 0, 0, request.need[kCpu]};
  if (request.gpu.kind == GpuRequestKind::kWhole) std::get<0>(size) = request.gpu.devices;
  for (size_t m = 0; m < request.models.size(); ++m) {
    const ModelFit& fit = request.models[m];
    if (!fit.fits) continue;
    std::get<2>(size) = std::max(std::get<2>(size), fit.share);
    if (!request.gpu.is_slice()) continue;
    const GpuModel& model = snapshot_.model(ModelId(static_cast<int32_t>(m)));
    std::get<1>(size) =
        std::max<int>(std::get<1>(size), model.profiles[static_cast<size_t>(fit.profile)].size);
  }
  return size;
}

void ExactPlaces::Search() {
  seekers_ = wanted_;
  for (const PodTarget& home : homes_) {
    seekers_.push_back({home.pod, {0, snapshot_.num_nodes()}, &home.placement});
  }
  std::ranges::stable_sort(
      seekers_, [this](const Seeker& a, const Seeker& b) { return SizeOf(a) > SizeOf(b); });
  PlaceFrom(0);
}

void ExactPlaces::PlaceFrom(size_t next) {
  if (!Spend() || MigOperations(state_, start_) >= below_) return;
  if (next == seekers_.size()) return Accept();
  const Seeker seeker = seekers_[next];
  const PodSetId s = snapshot_.pod_set_of(seeker.pod);
  NodeRange range = seeker.range;
  // Pods of one set of the claimant stand for each other.
  if (next > 0 && seeker.home == nullptr && seekers_[next - 1].home == nullptr &&
      snapshot_.pod_set_of(seekers_[next - 1].pod) == s && seekers_[next - 1].range == range) {
    range.begin = path_.back().placement.node.value();
  }
  const RequestClassId c = snapshot_.pod_set(s).request_class;
  for (int i = range.begin; i < range.end && !done_; ++i) {
    const NodeId n(i);
    const int signature = state_.tables().signature_of(n);
    if (!Spend() || state_.tables().eligibility(c, signature) != Eligibility::kEligible) continue;
    // Of a gang that moves altogether the first pod decides.
    if (seeker.home != nullptr && !KeepsTogether(state_, seeker.pod, n)) continue;
    for (const PodPlacement& place : PlacesOn(n, seeker)) {
      const ClusterState::Mark mark = state_.GetMark();
      const size_t charges = account_.GetMark();
      if (seeker.home == nullptr && !account_.Charge(seeker.pod, place)) continue;
      state_.Place(seeker.pod, place);
      path_.push_back({seeker.pod, place});
      PlaceFrom(next + 1);
      path_.pop_back();
      state_.RollBack(mark);
      account_.RollBack(charges);
    }
  }
}

bool ExactPlaces::IsHome(NodeId n, int g) const {
  return std::ranges::any_of(homes_, [&](const PodTarget& home) {
    return home.placement.node == n && ((home.placement.gpus >> g) & 1) != 0;
  });
}

// Whether it makes no difference which of two GPUs is taken. From where somebody moves, moves
// have to wait.
bool ExactPlaces::AreAlike(NodeId n, int a, int b) const {
  return !state_.tables().tracks_tenants() && state_.gpu(n, a) == state_.gpu(n, b) &&
         state_.instances(n, a) == state_.instances(n, b) && !IsHome(n, a) && !IsHome(n, b);
}

std::vector<PodPlacement> ExactPlaces::PlacesOn(NodeId n, const Seeker& seeker) const {
  std::vector<PodPlacement> places;
  const ModelId model = snapshot_.node_model(n);
  const PodSetId s = snapshot_.pod_set_of(seeker.pod);
  const RequestClass& request = snapshot_.request_class(snapshot_.pod_set(s).request_class);
  PodPlacement place;
  place.node = n;
  if (request.gpu.kind == GpuRequestKind::kNone) {
    if (IsFree(state_, s, place) && (!seeker.home || place != *seeker.home)) places = {place};
    return places;
  }
  if (!model.valid() || (seeker.home && model != snapshot_.node_model(seeker.home->node))) {
    return places;
  }
  std::vector<int> gpus(static_cast<size_t>(state_.tables().num_gpus(n)));
  for (size_t g = 0; g < gpus.size(); ++g) gpus[g] = static_cast<int>(g);
  if (request.gpu.is_slice()) {
    AddSlices(n, seeker, gpus, places);
    return places;
  }
  if (request.gpu.is_shared()) {
    place.share = static_cast<int32_t>(request.models[static_cast<size_t>(model.value())].share);
  }
  std::erase_if(gpus, [&](int g) {
    PodPlacement one = place;
    one.gpus = uint64_t{1} << g;
    return !IsFree(state_, s, one);
  });
  AddDevices(seeker, gpus, 0, request.gpu.devices, place, places);
  return places;
}

// `count` more of `gpus`, from the one at `from` on.
void ExactPlaces::AddDevices(const Seeker& seeker, const std::vector<int>& gpus, size_t from,
                             int count, PodPlacement place,
                             std::vector<PodPlacement>& places) const {
  if (count == 0) {
    if (!seeker.home || place != *seeker.home) places.push_back(place);
    return;
  }
  for (size_t i = from; i < gpus.size(); ++i) {
    const auto is_alike = [&](int g) { return AreAlike(place.node, g, gpus[i]); };
    if (std::any_of(gpus.begin() + static_cast<std::ptrdiff_t>(from),
                    gpus.begin() + static_cast<std::ptrdiff_t>(i), is_alike)) {
      continue;
    }
    PodPlacement more = place;
    more.gpus |= uint64_t{1} << gpus[i];
    AddDevices(seeker, gpus, i + 1, count - 1, more, places);
  }
}

void ExactPlaces::AddSlices(NodeId n, const Seeker& seeker, const std::vector<int>& gpus,
                            std::vector<PodPlacement>& places) const {
  const PodSetId s = snapshot_.pod_set_of(seeker.pod);
  const ModelId m = snapshot_.node_model(n);
  const ModelFit& fit = snapshot_.request_class(snapshot_.pod_set(s).request_class)
                            .models[static_cast<size_t>(m.value())];
  const GpuModel& model = snapshot_.model(m);
  for (int g : gpus) {
    const auto is_alike = [&](int other) { return other < g && AreAlike(n, other, g); };
    if (std::ranges::any_of(gpus, is_alike)) continue;
    for (size_t p = 0; p < model.profiles.size(); ++p) {
      const int profile = static_cast<int>(p);
      if (!fit.Accepts(profile) || (seeker.home && profile != seeker.home->profile)) continue;
      for (int start : model.profiles[p].starts) {
        PodPlacement place;
        place.node = n;
        place.gpus = uint64_t{1} << g;
        place.profile = static_cast<int16_t>(profile);
        place.start = static_cast<int16_t>(start);
        if (seeker.home && place == *seeker.home) continue;
        if (IsFree(state_, s, place)) places.push_back(place);
      }
    }
  }
}

// All have a place.
void ExactPlaces::Accept() {
  if (!permits_() || !IsInOrder()) return;
  Result result;
  result.operations = MigOperations(state_, start_);
  for (const PodTarget& target : path_) {
    const bool moves = std::ranges::find(homes_, target.pod, &PodTarget::pod) != homes_.end();
    (moves ? result.moved : result.placed).push_back(target);
  }
  below_ = result.operations;
  done_ = !is_least_ || below_ == 0;
  result_ = std::move(result);
}

// Whether those who move can do so one after the other. The state stands as it did in the end.
bool ExactPlaces::IsInOrder() {
  if (homes_.empty()) return true;
  budget_ -= static_cast<int64_t>(homes_.size());
  std::vector<PodTarget> moves;
  for (const PodTarget& target : path_) {
    const bool is_mover = std::ranges::find(homes_, target.pod, &PodTarget::pod) != homes_.end();
    if (is_mover) moves.push_back(target);
  }
  state_.RollBack(start_);
  for (const PodTarget& home : homes_) state_.Place(home.pod, home.placement);
  const bool in_order = InOrder(state_, std::move(moves), &budget_).has_value();
  state_.RollBack(start_);
  for (const PodTarget& target : path_) state_.Place(target.pod, target.placement);
  return in_order;
}

}  // namespace tessera
