#include "src/placement/exact_search.h"

#include <algorithm>

namespace tessera {
namespace {

// The walk is recursive, and a gang of more parts would need too deep a stack.
constexpr size_t kMaxParts = 512;

}  // namespace

ExactSearch::ExactSearch(ClusterState& state, const GangView& view, Account* account,
                         int64_t budget)
    : state_(state),
      snapshot_(state.snapshot()),
      view_(view),
      account_(account),
      budget_(budget),
      missing_(At(view.size())),
      signatures_(At(view.size())),
      twin_(At(view.size()), -1),
      chosen_(At(view.size())) {}

bool ExactSearch::Spend() {
  if (--budget_ >= 0) return true;
  undecided_ = true;
  return false;
}

void ExactSearch::CollectLeaves(int g, std::vector<int>& leaves) const {
  if (view_.Holds(g)) return;
  if (view_.at(g).is_pod_set()) {
    leaves.push_back(g);
    return;
  }
  for (int c = view_.first_child(g); c < view_.end_child(g); ++c) {
    if (view_.at(c).after < 0) CollectLeaves(c, leaves);
  }
}

void ExactSearch::CollectAnchors(int g) {
  const int level = view_.at(g).required_level;
  if (level >= 0) {
    levels_.push_back(level);
    if (!view_.Occupied(g).empty()) {
      for (const Candidate& tied : CandidatesOf(g, {0, snapshot_.num_nodes()})) {
        anchors_.push_back(tied.nodes);
      }
    }
  }
  if (view_.at(g).is_pod_set()) {
    if (view_.set(g).domain_level >= 0) levels_.push_back(view_.set(g).domain_level);
    return;
  }
  for (int c = view_.first_child(g); c < view_.end_child(g); ++c) CollectAnchors(c);
}

Verdict ExactSearch::Place(int g, NodeRange range, bool tied) {
  std::vector<int> leaves;
  CollectLeaves(g, leaves);
  if (leaves.size() > kMaxParts) return Verdict::kUndecided;
  for (int leaf : leaves) {
    const PodSetInfo& set = view_.set(leaf);
    for (int i = 0; i < set.count; ++i) {
      if (MayPlace(state_, set.pod(i))) missing_[At(leaf)].push_back(set.pod(i));
    }
  }
  MakeSignature(g);
  CollectAnchors(g);
  std::ranges::sort(levels_);
  levels_.erase(std::unique(levels_.begin(), levels_.end()), levels_.end());
  // Reading the nodes is work, too.
  budget_ -= range.size() / 64;
  classes_.emplace(state_, view_, leaves, range, budget_);
  account_mark_ = account_ != nullptr ? account_->GetMark() : 0;
  Verdict verdict = Search(g, range, tied);
  if (verdict == Verdict::kNo && found_cover_) {
    stopped_ = false;
    splits_ = true;
    verdict = Search(g, range, tied);
  }
  if (verdict != Verdict::kYes && account_ != nullptr) account_->RollBack(account_mark_);
  return verdict;
}

Verdict ExactSearch::Search(int g, NodeRange range, bool tied) {
  covered_.clear();
  const bool may = tied ? MayHold(g, range) : MayMeet(g, range);
  if (!may) return classes_->undecided() ? Verdict::kUndecided : Verdict::kNo;
  Agenda agenda = {{g, range, tied ? Task::kConstrain : Task::kMeet}};
  if (Expand(agenda)) return Verdict::kYes;
  return undecided_ || classes_->undecided() ? Verdict::kUndecided : Verdict::kNo;
}

// Does the tasks of `agenda`, the last first. Leaves it as it was on failure.
bool ExactSearch::Expand(Agenda& agenda) {
  if (agenda.empty()) return Finish();
  if (stopped_ || !Spend()) return false;
  const Task task = agenda.back();
  agenda.pop_back();
  if (ExpandTask(task, agenda)) return true;
  agenda.push_back(task);
  return false;
}

bool ExactSearch::ExpandTask(const Task& task, Agenda& agenda) {
  if (task.stage == Task::kCheck) return IsCoverable() && Expand(agenda);
  if (view_.Holds(task.g)) return Expand(agenda);
  if (task.stage == Task::kConstrain && view_.at(task.g).required_level >= 0) {
    return TryDomains(task, agenda);
  }
  return view_.at(task.g).is_pod_set() ? AddWant(task, agenda) : ChooseChildren(task, agenda);
}

bool ExactSearch::TryDomains(const Task& task, Agenda& agenda) {
  const int level = view_.at(task.g).required_level;
  const int twin = twin_[At(task.g)];
  std::vector<std::string> tried;
  for (const Candidate& candidate : CandidatesOf(task.g, task.range)) {
    if (undecided_ || stopped_) return false;
    if (twin >= 0 && chosen_[At(twin)] && candidate.order < *chosen_[At(twin)]) continue;
    if (!MayMeet(task.g, candidate.nodes)) continue;
    std::string likeness = LikenessOf(level, candidate.nodes);
    if (std::ranges::find(tried, likeness) != tried.end()) continue;
    tried.push_back(std::move(likeness));
    chosen_[At(task.g)] = candidate.order;
    agenda.push_back({task.g, candidate.nodes, Task::kCheck});
    agenda.push_back({task.g, candidate.nodes, Task::kMeet});
    if (Expand(agenda)) return true;
    agenda.resize(agenda.size() - 2);
    chosen_[At(task.g)].reset();
  }
  return false;
}

bool ExactSearch::ChooseChildren(const Task& task, Agenda& agenda) {
  std::vector<int> eligible;
  int missing = view_.at(task.g).min_children;
  for (int c = view_.first_child(task.g); c < view_.end_child(task.g); ++c) {
    if (view_.at(c).after >= 0) continue;
    if (view_.Holds(c)) {
      --missing;
    } else if (MayHold(c, task.range)) {
      eligible.push_back(c);
    }
  }
  // Equal siblings side by side, so that the first of them can stand for all.
  std::ranges::stable_sort(eligible, {}, [this](int c) {
    return std::pair<int, std::string_view>(-view_.Difficulty(c), SignatureOf(c));
  });
  std::vector<int> chosen;
  return ChooseFrom(eligible, 0, At(std::max(missing, 0)), chosen, task, agenda);
}

bool ExactSearch::ChooseFrom(std::span<const int> eligible, size_t at, size_t missing,
                             std::vector<int>& chosen, const Task& task, Agenda& agenda) {
  if (chosen.size() == missing) return PushChildren(chosen, task, agenda);
  if (undecided_ || stopped_ || eligible.size() - at < missing - chosen.size()) return false;
  chosen.push_back(eligible[at]);
  if (ChooseFrom(eligible, at + 1, missing, chosen, task, agenda)) return true;
  chosen.pop_back();
  // Without this child, its equals need not be tried in its stead.
  const std::string signature = SignatureOf(eligible[at]);
  while (at < eligible.size() && SignatureOf(eligible[at]) == signature) ++at;
  return ChooseFrom(eligible, at, missing, chosen, task, agenda);
}

bool ExactSearch::PushChildren(std::vector<int> chosen, const Task& task, Agenda& agenda) {
  for (size_t i = 0; i < chosen.size(); ++i) {
    const bool equal = i > 0 && SignatureOf(chosen[i - 1]) == SignatureOf(chosen[i]);
    twin_[At(chosen[i])] = equal ? chosen[i - 1] : -1;
  }
  const size_t before = agenda.size();
  std::ranges::reverse(chosen);
  for (int c : chosen) agenda.push_back({c, task.range, Task::kConstrain});
  if (Expand(agenda)) return true;
  agenda.resize(before);
  return false;
}

bool ExactSearch::AddWant(const Task& task, Agenda& agenda) {
  const int need = Missing(task.g);
  if (view_.set(task.g).max_per_domain == 0) {
    return AddPart(task.g, task.range, need, 0, [&] { return Expand(agenda); });
  }
  return Spread(task.g, SharesOf(task.g, task.range), 0, need, need, agenda);
}

// Deals the `left` pods of a leaf out to the domains from `shares[at]` on. Of domains
// that are alike, one before takes no fewer than one after: `last` is what it took.
bool ExactSearch::Spread(int leaf, std::span<const Share> shares, size_t at, int left, int last,
                         Agenda& agenda) {
  if (left == 0) return Expand(agenda);
  if (at == shares.size() || undecided_ || stopped_ || !Spend()) return false;
  int64_t rest = 0;
  for (size_t i = at + 1; i < shares.size(); ++i) rest += shares[i].most;
  const bool alike = at > 0 && shares[at].likeness == shares[at - 1].likeness;
  const int most = std::min({left, shares[at].most, alike ? last : left});
  for (int count = most; count >= 0 && left - count <= rest; --count) {
    const auto next = [&] { return Spread(leaf, shares, at + 1, left - count, count, agenda); };
    const size_t first = At(Missing(leaf) - left);
    if (count == 0 ? next() : AddPart(leaf, shares[at].nodes, count, first, next)) return true;
  }
  return false;
}

// Wants `need` pods of a leaf, from its missing pod number `first` on, in `range`.
bool ExactSearch::AddPart(int leaf, NodeRange range, int need, size_t first, Next next) {
  const int type = classes_->type_of(leaf);
  if (!splits_) {
    wants_.push_back({{type, need, range, ModelId()}, leaf});
    if (next()) return true;
    wants_.pop_back();
    return false;
  }
  std::vector<ModelId> models;
  if (view_.gpu(leaf).kind == GpuRequestKind::kNone) {
    models.push_back(ModelId());
  } else {
    for (int m = 0; m < snapshot_.num_models(); ++m) {
      if (classes_->MostIn(type, range, ModelId(m)) > 0) models.emplace_back(m);
    }
  }
  return Split(leaf, range, models, need, first, next);
}

// Gives GPU models from `models[0]` on the `left` pods, as far as the account permits.
bool ExactSearch::Split(int leaf, NodeRange range, std::span<const ModelId> models, int left,
                        size_t first, Next next) {
  if (left == 0) return next();
  if (models.empty() || !Spend()) return false;
  const int type = classes_->type_of(leaf);
  const ModelId model = models[0];
  const int64_t room =
      model.valid() ? classes_->MostIn(type, range, model) : classes_->MostIn(type, range);
  const std::vector<PodId>& pods = missing_[At(leaf)];
  const PodPlacement example = ExampleOn(leaf, range, model);
  std::vector<size_t> marks = {account_->GetMark()};
  while (At(left) >= marks.size() && room >= static_cast<int64_t>(marks.size())) {
    if (!account_->Charge(pods[first + marks.size() - 1], example)) {
      refused_ = view_.set_id(leaf);
      break;
    }
    marks.push_back(account_->GetMark());
  }
  // All pods that are left must find a model.
  const size_t least = models.size() == 1 ? At(left) : 0;
  for (size_t count = marks.size(); count-- > least;) {
    account_->RollBack(marks[count]);
    const int taken = static_cast<int>(count);
    if (taken > 0) wants_.push_back({{type, taken, range, model}, leaf});
    if (Split(leaf, range, models.subspan(1), left - taken, first + count, next)) return true;
    if (taken > 0) wants_.pop_back();
    if (undecided_) break;
  }
  account_->RollBack(marks[0]);
  return false;
}

}  // namespace tessera
