#include "tessera/io/plan_json.h"

#include <array>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "src/io/json_reader.h"
#include "src/io/json_writer.h"
#include "src/io/nouns.h"

namespace tessera {
namespace io_internal {
namespace {

constexpr std::string_view kKind = "Plan";

// The words for `do`, in the order of the alternatives of `Action`.
constexpr std::array<std::string_view, std::variant_size_v<Action>> kActions = {
    "evict", "destroy", "set_mig", "create", "move", "bind", "nominate"};

template <typename A>
absl::Status IntoWorkload(const Place& at, A& out) {
  return Read(at, out.pod.workload);
}
template <typename A>
absl::Status IntoPodSet(const Place& at, A& out) {
  return Read(at, out.pod.pod_set);
}
template <typename A>
absl::Status IntoIndex(const Place& at, A& out) {
  return Read(at, out.pod.index);
}

absl::Status ReadAction(const Place& at, EvictAction& out) {
  static constexpr Field<EvictAction> kFields[] = {
      {"do"},
      {"workload", IntoWorkload, kRequired},
      {"pod_set", IntoPodSet, kRequired},
      {"index", IntoIndex, kRequired},
      {"reason", Into<&EvictAction::reason>},
      {"for", Into<&EvictAction::on_behalf_of>},
  };
  return ReadFields(at, kFields, out);
}

absl::Status ReadAction(const Place& at, SetMigAction& out) {
  static constexpr Field<SetMigAction> kFields[] = {
      {"do"},
      {"node", Into<&SetMigAction::node>, kRequired},
      {"gpu", Into<&SetMigAction::gpu>, kRequired},
      {"enabled", Into<&SetMigAction::enabled>, kRequired},
  };
  return ReadFields(at, kFields, out);
}

// Destroy and create.
template <typename A>
absl::Status ReadCarving(const Place& at, A& out) {
  static constexpr Field<A> kFields[] = {
      {"do"},
      {"node", Into<&A::node>, kRequired},
      {"gpu", Into<&A::gpu>, kRequired},
      {"profile", Into<&A::profile>, kRequired},
      {"start", Into<&A::start>, kRequired},
  };
  return ReadFields(at, kFields, out);
}

absl::Status ReadAction(const Place& at, DestroyAction& out) { return ReadCarving(at, out); }
absl::Status ReadAction(const Place& at, CreateAction& out) { return ReadCarving(at, out); }

constexpr std::string_view kExpires = "expires";

// Only a nomination may.
template <typename A>
absl::Status ReadExpires(const Place& field, A& to) {
  if constexpr (requires { to.expires; }) {
    return Read(field, to.expires);
  } else {
    return field.Error("only a nomination expires");
  }
}

// Move, bind and nominate.
template <typename A>
absl::Status ReadAction(const Place& at, A& out) {
  static constexpr Field<A> kFields[] = {
      {"do"},
      {"workload", IntoWorkload<A>, kRequired},
      {"pod_set", IntoPodSet<A>, kRequired},
      {"index", IntoIndex<A>, kRequired},
      {"node", Into<&A::node>, kRequired},
      {"gpus", [](const Place& field, A& to) { return Read(field, to.devices.gpus); }},
      {"shares", [](const Place& field, A& to) { return Read(field, to.devices.shares); }},
      {"slices", [](const Place& field, A& to) { return Read(field, to.devices.slices); }},
      {kExpires, ReadExpires<A>},
  };
  return ReadFields(at, kFields, out);
}

template <size_t kIndex = 0>
absl::Status ReadAlternative(const Place& at, size_t index, Action& out) {
  if (index == kIndex) return ReadAction(at, out.emplace<kIndex>());
  if constexpr (kIndex + 1 < kActions.size()) {
    return ReadAlternative<kIndex + 1>(at, index, out);
  }
  return absl::InternalError("an action without a reader");
}

absl::Status ReadReason(const Place& at, PendingWorkload& out) {
  TESSERA_RETURN_IF_ERROR(Expect(at, JsonKind::kString));
  const std::optional<PendingReason> reason = PendingReasonFromString(at.value().text);
  if (!reason) {
    return at.Error(absl::StrCat("\"", ToAbsl(at.value().text), "\" is not a reason"));
  }
  out.reason = *reason;
  return absl::OkStatus();
}

void WritePodMembers(JsonWriter& json, const PodRef& pod) {
  json.Member("workload", pod.workload);
  json.Member("pod_set", pod.pod_set);
  json.Member("index", pod.index);
}

void WriteActionMembers(JsonWriter& json, const EvictAction& action) {
  WritePodMembers(json, action.pod);
  WriteText(json, "reason", action.reason);
  WriteText(json, "for", action.on_behalf_of);
}

void WriteActionMembers(JsonWriter& json, const SetMigAction& action) {
  json.Member("node", action.node);
  json.Member("gpu", action.gpu);
  json.Flag("enabled", action.enabled);
}

template <typename A>
void WriteActionMembers(JsonWriter& json, const A& action) {
  if constexpr (requires { action.profile; }) {
    json.Member("node", action.node);
    json.Member("gpu", action.gpu);
    json.Member("profile", action.profile);
    json.Member("start", action.start);
  } else {
    WritePodMembers(json, action.pod);
    json.Member("node", action.node);
    WriteDeviceMembers(json, action.devices);
    if constexpr (requires { action.expires; }) WriteOptional(json, kExpires, action.expires);
  }
}

void WriteAction(JsonWriter& json, const Action& action) {
  json.BeginObject();
  json.Member("do", kActions[action.index()]);
  std::visit([&json](const auto& a) { WriteActionMembers(json, a); }, action);
  json.EndObject();
}

void WritePending(JsonWriter& json, const PendingWorkload& pending) {
  json.BeginObject();
  json.Member("workload", pending.workload);
  json.Member("reason", ToString(pending.reason));
  WriteText(json, "text", pending.text);
  WriteText(json, "proof", pending.proof);
  if (!pending.counts.empty()) {
    json.Key("counts");
    json.BeginObject();
    for (const auto& [label, count] : pending.counts) json.Member(label, count);
    json.EndObject();
  }
  if (pending.below_minimum) json.Flag("below_minimum", true);
  json.EndObject();
}

}  // namespace

absl::Status Read(const Place& at, Action& out) {
  TESSERA_RETURN_IF_ERROR(Expect(at, JsonKind::kObject));
  const JsonValue* what = FindMember(at.value(), "do");
  if (what == nullptr) return at.ErrorIn("do", "is missing");
  size_t index = 0;
  TESSERA_RETURN_IF_ERROR(ReadName(Place(at, *what), kActions, index));
  return ReadAlternative(at, index, out);
}

absl::Status Read(const Place& at, PendingWorkload& out) {
  static constexpr Field<PendingWorkload> kFields[] = {
      {"workload", Into<&PendingWorkload::workload>, kRequired},
      {"reason", ReadReason, kRequired},
      {"text", Into<&PendingWorkload::text>},
      {"proof", Into<&PendingWorkload::proof>},
      {"counts", Into<&PendingWorkload::counts>},
      {"below_minimum", Into<&PendingWorkload::below_minimum>},
  };
  return ReadFields(at, kFields, out);
}

absl::Status Read(const Place& at, Plan& out) {
  static constexpr Field<Plan> kFields[] = {
      {"apiVersion"},
      {"kind"},
      {"actions", Into<&Plan::actions>},
      {"pending", Into<&Plan::pending>},
  };
  TESSERA_RETURN_IF_ERROR(CheckHeader(at, kKind, kRequired));
  return ReadFields(at, kFields, out);
}

}  // namespace io_internal

absl::StatusOr<Plan> ParsePlan(std::string_view json) {
  TESSERA_ASSIGN_OR_RETURN(const io_internal::JsonDocument document,
                           io_internal::JsonDocument::Parse(json));
  Plan plan;
  TESSERA_RETURN_IF_ERROR(io_internal::Read(io_internal::Place(document.root()), plan));
  return plan;
}

std::string WritePlan(const Plan& plan) {
  io_internal::JsonWriter json;
  json.BeginObject();
  json.Member("apiVersion", io_internal::kApiVersion);
  json.Member("kind", io_internal::kKind);
  io_internal::WriteList(json, "actions", plan.actions, io_internal::WriteAction);
  io_internal::WriteList(json, "pending", plan.pending, io_internal::WritePending);
  json.EndObject();
  return std::move(json).Take();
}

}  // namespace tessera
