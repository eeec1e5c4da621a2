// The MIG operations of a plan as a shell script.

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "tessera/base/status.h"
#include "tessera/io/mig_formats.h"

namespace tessera {
namespace {

constexpr char kHead[] = R"sh(#!/bin/sh
# The MIG operations of a plan, by tessera. Usage: sh SCRIPT [NODE]
# NODE is this host unless given. Exit codes: 0 done, 64 the plan has no operations for
# NODE, others an operation failed.
set -eu

fail() {
  echo "$1" >&2
  exit 1
}

# mode_is GPU MODE
mode_is() {
  [ "$(nvidia-smi -i "$1" --query-gpu=mig.mode.current --format=csv,noheader)" = "$2" ]
}

# set_mig GPU 0|1 reset|keep: the driver may leave the mode pending until a reset.
set_mig() {
  nvidia-smi -i "$1" -mig "$2"
  mode=Disabled
  [ "$2" = 0 ] || mode=Enabled
  if mode_is "$1" "$mode"; then return; fi
  [ "$3" = reset ] || fail "GPU $1: the MIG mode did not change; is the GPU in use?"
  nvidia-smi -i "$1" --gpu-reset
  mode_is "$1" "$mode" || fail "GPU $1: the MIG mode did not change with a reset"
}

# create GPU PROFILE START
create() {
  nvidia-smi mig -i "$1" -cgi "$2:$3" -C
}

# destroy GPU PROFILE START: compute instances go first. There may be none, and those
# in use keep the instance, so that only the second command need succeed.
destroy() {
  id=$(nvidia-smi mig -i "$1" -lgi | awk -v profile="$2" -v start="$3:" '
    { gsub(/\|/, " ") }
    $2 == "MIG" && $3 == profile && index($6, start) == 1 { print $5 }')
  [ -n "$id" ] || fail "GPU $1: there is no $2 at $3"
  nvidia-smi mig -i "$1" -gi "$id" -dci || true
  nvidia-smi mig -i "$1" -gi "$id" -dgi
}

node=${1:-$(hostname)}
case $node in
)sh";

constexpr char kTail[] = R"sh(*)
  echo "the plan has no MIG operations for $node" >&2
  exit 64
  ;;
esac
)sh";

// One word of the shell that stands for `text`.
std::string Quote(const std::string& text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", R"('\'')"}}), "'");
}

// Collects the commands of each node.
class CommandWriter {
 public:
  explicit CommandWriter(const Snapshot& snapshot) : snapshot_(snapshot) {}

  absl::Status operator()(const SetMigAction& action) {
    TESSERA_ASSIGN_OR_RETURN(const GpuModel* model, FindModel(action.node, action.gpu));
    Append(action.node, absl::StrCat("set_mig ", action.gpu, action.enabled ? " 1 " : " 0 ",
                                     model->mig_toggle_needs_reset ? "reset" : "keep"));
    return absl::OkStatus();
  }
  absl::Status operator()(const CreateAction& action) { return AppendInstance("create", action); }
  absl::Status operator()(const DestroyAction& action) { return AppendInstance("destroy", action); }
  // Pods are the host's.
  template <typename Other>
  absl::Status operator()(const Other&) {
    return absl::OkStatus();
  }

  std::string Take() && {
    std::string script = kHead;
    for (const auto& [node, commands] : commands_) {
      absl::StrAppend(&script, Quote(node), ")\n", commands, "  ;;\n");
    }
    return script + kTail;
  }

 private:
  // The model of a GPU that exists and has MIG.
  absl::StatusOr<const GpuModel*> FindModel(const std::string& name, int gpu) const {
    const std::optional<NodeId> n = snapshot_.FindNode(name);
    if (!n) {
      std::vector<std::string_view> known;
      for (const Node& node : snapshot_.spec().nodes) known.push_back(node.name);
      return absl::InvalidArgumentError(
          absl::StrCat("no node is named \"", name, "\"", DidYouMean(name, known)));
    }
    if (gpu < 0 || static_cast<size_t>(gpu) >= snapshot_.node(*n).gpus.size()) {
      return absl::InvalidArgumentError(absl::StrCat(name, " has no GPU ", gpu));
    }
    const GpuModel& model = snapshot_.model(snapshot_.node_model(*n));
    if (!model.supports_mig()) {
      return absl::InvalidArgumentError(absl::StrCat("a ", model.name, " has no MIG"));
    }
    return &model;
  }

  template <typename InstanceAction>
  absl::Status AppendInstance(std::string_view command, const InstanceAction& action) {
    TESSERA_ASSIGN_OR_RETURN(const GpuModel* model, FindModel(action.node, action.gpu));
    const auto profile = std::ranges::find(model->profiles, action.profile, &MigProfile::name);
    if (profile == model->profiles.end()) {
      std::vector<std::string_view> known;
      for (const MigProfile& p : model->profiles) known.push_back(p.name);
      return absl::InvalidArgumentError(absl::StrCat("a ", model->name, " has no profile \"",
                                                     action.profile, "\"",
                                                     DidYouMean(action.profile, known)));
    }
    if (std::ranges::find(profile->starts, action.start) == profile->starts.end()) {
      return absl::InvalidArgumentError(
          absl::StrCat(action.profile, " cannot start at slice ", action.start));
    }
    Append(action.node, absl::StrCat(ToAbsl(command), " ", action.gpu, " ", Quote(action.profile),
                                     " ", action.start));
    return absl::OkStatus();
  }

  void Append(const std::string& node, std::string_view command) {
    absl::StrAppend(&commands_[node], "  ", ToAbsl(command), "\n");
  }

  const Snapshot& snapshot_;
  std::map<std::string, std::string> commands_;  // by node
};

}  // namespace

absl::StatusOr<std::string> WriteMigCommands(const Snapshot& snapshot, const Plan& plan) {
  CommandWriter writer(snapshot);
  for (size_t i = 0; i < plan.actions.size(); ++i) {
    const absl::Status status = std::visit(writer, plan.actions[i]);
    if (!status.ok()) return InvalidAt(absl::StrCat("actions[", i, "]"), ToStd(status.message()));
  }
  return std::move(writer).Take();
}

}  // namespace tessera
