// The command line of tessera: questions to a cluster dump.
//
// Exit codes: 0 plan made, 1 input rejected, 2 wrong usage, 3 plan failed the
// referee.

#include <CLI/CLI.hpp>
#include <functional>
#include <string>
#include <vector>

#include "examples/tessera/commands.h"
#include "tessera/base/version.h"

namespace {

using namespace tessera::cli;  // NOLINT: this file only binds names to commands

constexpr int kWrongUsage = 2;

// What the options of all commands are read into.
struct Options {
  PlanArguments plan;
  MigArguments mig;
  ReplicasArguments replicas;
  std::string file, other, workload, format = "text";
  std::string preset = "strict";
  std::string compare;
};

void AddFile(CLI::App* command, std::string& file) {
  command->add_option("FILE", file, "snapshot (tessera/v1 JSON), - for standard input")->required();
}

void AddPreset(CLI::App* command, std::string& preset) {
  command->add_option("--preset", preset, "policy: strict (default) or kai")
      ->check(CLI::IsMember({"strict", "kai"}));
}

CLI::Option* AddFormat(CLI::App* command, std::string& format) {
  return command->add_option("--format", format, "text (default) or json")
      ->check(CLI::IsMember({"text", "json"}));
}

void AddPlan(CLI::App& app, Options& o, std::function<int()>& run) {
  CLI::App* plan = app.add_subcommand("plan", "plan one scheduling cycle");
  AddFile(plan, o.plan.file);
  AddPreset(plan, o.plan.preset);
  CLI::Option* format = AddFormat(plan, o.format);
  plan->add_option("--out", o.plan.out, "also write the plan to this file");
  plan->add_flag("--mosaic", o.plan.mosaic, "draw every GPU as it is after the plan");
  plan->add_flag("--room", o.plan.room, "say for all that waits who would have to yield for it");
  plan->add_option("--svg", o.plan.svg,
                   "draw every GPU as it is when the plan has settled, into this file");
  plan->add_option("--export", o.plan.export_as,
                   "print the plan's MIG operations as a script for nvidia-smi, or the MIG "
                   "layouts after it as a configuration for mig-parted")
      ->check(CLI::IsMember({"nvidia-smi", "mig-parted"}))
      ->excludes(format);
  plan->callback([&] {
    o.plan.json = o.format == "json";
    run = [&o] { return RunPlan(o.plan); };
  });
}

// The options about what to change in a snapshot, which `others` do not go with.
void AddMigChanges(CLI::App* mig, Options& o, CLI::Option* model,
                   const std::vector<CLI::Option*>& others) {
  CLI::Option* want = mig->add_option(
      "--want", o.mig.want,
      "the fewest MIG operations until instances such as 3g.40gb=2,1g.10gb are idle");
  CLI::Option* defragment = mig->add_option(
      "--defragment", o.mig.defragment, "the fewest moves that make an instance of a profile fit");
  CLI::Option* node =
      mig->add_option("--node", o.mig.node, "with --want or --defragment: only on this node");
  want->needs(model)->excludes(defragment);
  defragment->needs(model);
  for (CLI::Option* option : {want, defragment, node}) {
    for (CLI::Option* other : others) option->excludes(other);
  }
}

void AddMig(CLI::App& app, Options& o, std::function<int()>& run) {
  CLI::App* mig = app.add_subcommand("mig", "the MIG geometry of a GPU model, or of a cluster");
  CLI::Option* model = mig->add_option("MODEL", o.mig.model,
                                       "such as H100-80GB; left out, all are listed; with any "
                                       "option but --format, --layout and --lgi, a snapshot");
  CLI::Option* format = AddFormat(mig, o.format);
  CLI::Option* layout = mig->add_option(
      "--layout", o.mig.layout, "what still fits beside instances such as 3g.40gb@4,1g.10gb@0");
  CLI::Option* lgi = mig->add_option(
      "--lgi", o.mig.lgi, "the same for what `nvidia-smi mig -lgi` printed to this file");
  CLI::Option* to = mig->add_option("--export", o.mig.export_as,
                                    "print the MIG layouts of a snapshot in this format");
  to->check(CLI::IsMember({"mig-parted"}))->needs(model)->excludes(format);
  CLI::Option* svg =
      mig->add_option("--svg", o.mig.svg, "draw every GPU of a snapshot into this file");
  svg->needs(model)->excludes(format);
  layout->needs(model)->excludes(lgi)->excludes(to)->excludes(svg);
  lgi->needs(model)->excludes(to)->excludes(svg);
  AddMigChanges(mig, o, model, {layout, lgi, to, svg});
  mig->callback([&] {
    o.mig.json = o.format == "json";
    const bool is_change = !o.mig.want.empty() || !o.mig.defragment.empty();
    if (!o.mig.node.empty() && !is_change) {
      throw CLI::RequiredError("--want or --defragment");
    }
    const bool is_cluster = !o.mig.export_as.empty() || !o.mig.svg.empty();
    run = [&o, is_change, is_cluster] {
      if (is_change) return RunMigChanges(o.mig);
      return is_cluster ? RunMigOfCluster(o.mig) : RunMig(o.mig);
    };
  });
}

void AddReplicas(CLI::App& app, Options& o, std::function<int()>& run) {
  CLI::App* replicas =
      app.add_subcommand("replicas", "how many engines an LLM service should run, and why");
  replicas
      ->add_option("SERVICE", o.replicas.file, "service (tessera/v1 JSON), - for standard input")
      ->required();
  AddFormat(replicas, o.format);
  replicas->add_option("--cluster", o.replicas.cluster,
                       "also ask which of the engines can start in this snapshot");
  replicas->add_option("--svg", o.replicas.svg,
                       "replay the last day of its history, and draw load, engines and SLA "
                       "attainment into this file");
  replicas->callback([&] {
    o.replicas.json = o.format == "json";
    run = [&o] { return RunReplicas(o.replicas); };
  });
}

void AddCommands(CLI::App& app, Options& o, std::function<int()>& run) {
  AddPlan(app, o, run);

  CLI::App* explain = app.add_subcommand("explain", "why a workload is where it is, or waits");
  AddFile(explain, o.file);
  AddPreset(explain, o.preset);
  explain->add_option("--workload", o.workload, "its name")->required();
  explain->callback([&] { run = [&o] { return RunExplain(o.file, o.workload, o.preset); }; });

  CLI::App* shares = app.add_subcommand("shares", "what each queue deserves and holds");
  AddFile(shares, o.file);
  AddPreset(shares, o.preset);
  AddFormat(shares, o.format);
  shares->add_option("--compare", o.compare, "show the fair shares of this preset, too")
      ->check(CLI::IsMember({"strict", "kai"}));
  shares->callback(
      [&] { run = [&o] { return RunShares(o.file, o.preset, o.compare, o.format == "json"); }; });

  CLI::App* check = app.add_subcommand("check", "referee a plan");
  AddFile(check, o.file);
  AddPreset(check, o.preset);
  check->add_option("PLAN", o.other, "plan (tessera/v1 JSON)")->required();
  check->callback([&] { run = [&o] { return RunCheck(o.file, o.other, o.preset); }; });

  AddMig(app, o, run);
  AddReplicas(app, o, run);

  CLI::App* openb =
      app.add_subcommand("import-openb", "Alibaba's openb trace as a snapshot, on standard output");
  openb->add_option("NODES", o.file, "node list (CSV)")->required();
  openb->add_option("PODS", o.other, "pod list (CSV)")->required();
  openb->callback([&] { run = [&o] { return RunImportOpenb(o.file, o.other); }; });
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("Who gets which GPU slice, and why.", "tessera");
  app.set_version_flag("--version", std::string(tessera::Version()));
  app.require_subcommand(1);
  app.footer(
      "Exit codes: 0 plan made, 1 input rejected, 2 wrong usage, 3 plan failed the referee.");
  Options options;
  std::function<int()> run;
  AddCommands(app, options, run);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : kWrongUsage;
  }
  return run();
}
