#include "tessera/io/mosaic_svg.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "src/io/mosaic_parts.h"
#include "src/io/svg_writer.h"
#include "src/io/tiles.h"
#include "tessera/resources/units.h"

namespace tessera {
namespace {

using io_internal::Arrange;
using io_internal::Box;
using io_internal::ColourOf;
using io_internal::Rest;
using io_internal::Rgb;
using io_internal::Shorten;
using io_internal::Span;
using io_internal::SvgWriter;
using io_internal::Tile;
using io_internal::UnitsOf;
using Tiles = std::vector<Tile>;

constexpr char kHead[] =
    R"svg(<style>
text{font:11px sans-serif;fill:#222}
.title{font-size:17px;font-weight:bold}
.node{font-size:12px;font-weight:bold}
.note{font-size:12px;fill:#555}
.free{fill:#e6e6e6}
.hole{fill:url(#hatch)}
.idle{fill:#fff;stroke:#444}
.leaving{fill-opacity:.35}
.nominated{fill-opacity:0;stroke-width:2;stroke-dasharray:5 2}
.unhealthy{stroke:#c00;stroke-width:1.5}
</style>
<defs><pattern id="hatch" width="5" height="5" patternUnits="userSpaceOnUse" )svg"
    R"svg(patternTransform="rotate(45)"><rect width="5" height="5" fill="#fff"/>)svg"
    R"svg(<rect width="1.6" height="5" fill="#b4b4b4"/></pattern></defs>
)svg";

// Half a pixel aside, a line of one pixel is sharp.
constexpr char kIdleLook[] = "class=\"idle\" transform=\"translate(.5 .5)\"";

constexpr int kMargin = 16;
constexpr int kMaxLabelledGpus = 64;
constexpr size_t kMaxQueuesInLegend = 24;

// Where things go, in pixels. Bars are multiples of 48, so that units of every usual axis
// (4, 8, 12, 16) are whole pixels.
struct Measures {
  bool labelled = true;
  int columns = 1;
  int column_head = 0;
  int column_gap = 32;
  int node_head = 24;
  int node_gap = 14;
  int name = 48;
  int bar = 768;
  int row = 20;
  int pitch = 24;

  int column_width() const { return name + bar + column_gap; }
};

Measures MeasuresFor(int nodes, int gpus) {
  Measures m;
  if (gpus <= kMaxLabelledGpus) {
    if (gpus <= 16) return m;
    m.columns = 2;
    m.bar = 432;
    return m;
  }
  m = {.labelled = false,
       .column_head = 18,
       .column_gap = 16,
       .node_head = 0,
       .node_gap = 6,
       .name = 0,
       .bar = 144,
       .row = 6,
       .pitch = 7};
  m.columns = 4;
  while (m.columns < 16 && m.columns * m.columns < nodes) ++m.columns;
  return m;
}

std::string Hex(const Rgb& rgb) {
  return absl::StrFormat("\"#%02x%02x%02x\"", rgb.red, rgb.green, rgb.blue);
}

// "1.25 GPUs" for an amount in 1/7000.
std::string GpusText(int64_t amount) {
  const int64_t hundredths = (100 * amount + kGpuUnitsPerDevice / 2) / kGpuUnitsPerDevice;
  return absl::StrCat(static_cast<double>(hundredths) / 100, hundredths == 100 ? " GPU" : " GPUs");
}

// What of `tables`' plain profiles still fits beside the instances of `gpu`.
std::string RoomText(const MigTables& tables, const Gpu& gpu) {
  std::vector<Instance> instances;
  for (const GpuInstance& instance : gpu.instances) {
    instances.push_back({*tables.model().FindProfile(instance.profile), instance.start});
  }
  const absl::StatusOr<LayoutKey> key = tables.KeyOf(instances, "");
  std::vector<std::string> room;
  for (size_t p = 0; key.ok() && p < tables.model().profiles.size(); ++p) {
    const MigProfile& profile = tables.model().profiles[p];
    const int capacity = tables.Capacity(*key, static_cast<int>(p));
    if (profile.is_variant() || capacity == 0) continue;
    room.push_back(absl::StrCat(capacity, " x ", profile.name));
  }
  return room.empty() ? "no profile fits" : "room for " + absl::StrJoin(room, ", or ");
}

class MosaicPainter {
 public:
  MosaicPainter(const Snapshot& snapshot, const MosaicSvgOptions& options);

  std::string Paint(const std::string& title) &&;

 private:
  const Tiles& tiles(NodeId n, size_t g) const { return tiles_[static_cast<size_t>(n.value())][g]; }
  QueueId QueueOf(const Tile& tile) const {
    return snapshot_.info(snapshot_.pod_set(snapshot_.pod_set_of(tile.pod)).workload).queue;
  }
  // The part of a bar at (x, y), a pixel less on its right.
  Box BoxOf(const Span& span, int x, int y) const;

  int NodeHeight(NodeId n) const;
  void CountHoldings();
  std::string Summary() const;
  int DrawLegend(int width, int y);
  void DrawItem(std::string_view look, const std::string& text, int width, int& x, int& y);
  int DrawNodes(int top);
  void DrawNode(NodeId n, int x, int y);
  void DrawGpu(NodeId n, size_t g, int x, int y);
  void DrawFree(NodeId n, size_t g, const std::vector<Span>& spans, int x, int y);
  void DrawIdle(NodeId n, size_t g, int x, int y, std::vector<Span>& spans);
  void DrawPod(NodeId n, size_t g, const Tile& tile, Box box);
  void DrawLabel(const Box& box, std::string_view look, const std::string& text);
  std::string PartText(NodeId n, const Tile& tile) const;
  std::string PodTooltip(NodeId n, size_t g, const Tile& tile) const;

  const Snapshot& snapshot_;
  const std::vector<std::vector<Tiles>> tiles_;
  std::vector<NodeId> nodes_;     // that are drawn
  int gpus_ = 0;                  // of these
  std::vector<size_t> ranks_;     // of leaf queues among themselves, by queue
  std::vector<int64_t> held_;     // in 1/7000 GPU, by queue
  std::vector<bool> is_present_;  // whether the queue has a tile
  Measures measures_;
  int columns_ = 1;  // in use
  SvgWriter svg_;
};

MosaicPainter::MosaicPainter(const Snapshot& snapshot, const MosaicSvgOptions& options)
    : snapshot_(snapshot), tiles_(io_internal::CollectTiles(snapshot)) {
  for (int i = 0; i < snapshot.num_nodes(); ++i) {
    const NodeId n(i);
    if (snapshot.node(n).gpus.empty() || (options.node && *options.node != n)) continue;
    nodes_.push_back(n);
    gpus_ += static_cast<int>(snapshot.node(n).gpus.size());
  }
  size_t leaves = 0;
  for (int q = 0; q < snapshot.queues().size(); ++q) {
    ranks_.push_back(leaves);
    if (snapshot.queues().is_leaf(QueueId(q))) ++leaves;
  }
  CountHoldings();
  measures_ = MeasuresFor(static_cast<int>(nodes_.size()), gpus_);
}

void MosaicPainter::CountHoldings() {
  held_.resize(ranks_.size());
  is_present_.resize(ranks_.size());
  for (NodeId n : nodes_) {
    const GpuModel& model = snapshot_.model(snapshot_.node_model(n));
    for (size_t g = 0; g < snapshot_.node(n).gpus.size(); ++g) {
      for (const Tile& tile : tiles(n, g)) {
        const size_t q = static_cast<size_t>(QueueOf(tile).value());
        is_present_[q] = true;
        if (tile.phase != PodPhase::kRunning) continue;
        int64_t held = tile.share > 0 ? tile.share : kGpuUnitsPerDevice;
        if (tile.is_slice()) {
          const MigProfile& profile = model.profiles[static_cast<size_t>(tile.profile)];
          held = profile.compute_slices * kGpuUnitsPerDevice / model.compute_slices;
        }
        held_[q] += held;
      }
    }
  }
}

std::string MosaicPainter::Paint(const std::string& title) && {
  // The legend's height decides where nodes start, their columns how wide the picture is.
  const int width =
      2 * kMargin - measures_.column_gap + measures_.columns * measures_.column_width();
  svg_.Text(kMargin, 30, "class=\"title\"", title);
  svg_.Text(kMargin, 50, "class=\"note\"", Summary());
  const int top = DrawLegend(width, 66);
  const int bottom = DrawNodes(top + 16);
  const int used = 2 * kMargin - measures_.column_gap + columns_ * measures_.column_width();
  return std::move(svg_).Take(std::max(width, used), bottom + kMargin, kHead);
}

std::string MosaicPainter::Summary() const {
  int without = 0;
  for (NodeId n : nodes_) {
    for (size_t g = 0; g < snapshot_.node(n).gpus.size(); ++g) without += tiles(n, g).empty();
  }
  return absl::StrCat(nodes_.size(), nodes_.size() == 1 ? " node, " : " nodes, ", gpus_,
                      gpus_ == 1 ? " GPU, " : " GPUs, ", without, " without pods");
}

void MosaicPainter::DrawItem(std::string_view look, const std::string& text, int width, int& x,
                             int& y) {
  constexpr int kPixelsPerCharacter = 7;
  const int needed = 36 + kPixelsPerCharacter * static_cast<int>(text.size());
  if (x > kMargin && x + needed > width - kMargin) {
    x = kMargin;
    y += 20;
  }
  svg_.Rect({x, y, 18, 12}, look, "");
  svg_.Text(x + 24, y + 10, "", text);
  x += needed;
}

int MosaicPainter::DrawLegend(int width, int y) {
  int x = kMargin;
  size_t listed = 0, more = 0;
  for (size_t q = 0; q < ranks_.size(); ++q) {
    if (!is_present_[q]) continue;
    if (++listed > kMaxQueuesInLegend) {
      ++more;
      continue;
    }
    const QueueId id(static_cast<int32_t>(q));
    DrawItem("fill=" + Hex(ColourOf(ranks_[q])),
             absl::StrCat(Shorten(snapshot_.queues().queue(id).name, 40), ": ", GpusText(held_[q])),
             width, x, y);
  }
  if (more > 0) svg_.Text(x, y + 10, "", absl::StrCat("and ", more, " more queues"));
  if (listed > 0) y += 24;
  x = kMargin;
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kKeys = {
      {{"class=\"free\"", "free GPU"},
       {"class=\"hole\"", "room on a GPU in use"},
       {kIdleLook, "idle MIG instance"},
       {"class=\"leaving\" fill=\"#555\"", "leaving"},
       {"class=\"nominated\" stroke=\"#555\"", "waits for its place"}}};
  for (const auto& [look, text] : kKeys) DrawItem(look, std::string(text), width, x, y);
  DrawItem("class=\"free\"", "unhealthy", width, x, y);
  const int left = x - 36 - 7 * 9;
  svg_.Line(left, y, left + 18, y + 12, "class=\"unhealthy\"");
  svg_.Line(left, y + 12, left + 18, y, "class=\"unhealthy\"");
  return y + 12;
}

int MosaicPainter::NodeHeight(NodeId n) const {
  return measures_.node_head + static_cast<int>(snapshot_.node(n).gpus.size()) * measures_.pitch +
         measures_.node_gap;
}

int MosaicPainter::DrawNodes(int top) {
  int64_t total = 0;
  for (NodeId n : nodes_) total += NodeHeight(n);
  const int64_t full = (total + measures_.columns - 1) / measures_.columns;
  int x = kMargin, y = 0, bottom = top;
  top += measures_.column_head;
  for (NodeId n : nodes_) {
    if (y > 0 && y + NodeHeight(n) / 2 > full) {
      x += measures_.column_width();
      y = 0;
      ++columns_;
    }
    if (y == 0 && !measures_.labelled) {
      svg_.Text(x, top - 6, "", Shorten(snapshot_.node(n).name, measures_.bar / 7));
    }
    DrawNode(n, x, top + y);
    y += NodeHeight(n);
    bottom = std::max(bottom, top + y - measures_.node_gap);
  }
  return bottom;
}

void MosaicPainter::DrawNode(NodeId n, int x, int y) {
  const Node& node = snapshot_.node(n);
  if (measures_.labelled) {
    const std::string name = Shorten(node.name, 30);
    svg_.Text(x, y + 14, "class=\"node\"", name);
    const std::string note =
        io_internal::NodeNote(snapshot_, n, tiles_[static_cast<size_t>(n.value())]);
    svg_.Text(x + 12 + 8 * static_cast<int>(name.size()), y + 14, "class=\"note\"", note);
  }
  y += measures_.node_head;
  for (size_t g = 0; g < node.gpus.size(); ++g, y += measures_.pitch) {
    if (measures_.labelled) svg_.Text(x, y + 14, "", absl::StrCat("GPU ", g));
    DrawGpu(n, g, x + measures_.name, y);
  }
}

Box MosaicPainter::BoxOf(const Span& span, int x, int y) const {
  const auto pixel = [&](int64_t at) {
    return static_cast<int>(at * measures_.bar / kGpuUnitsPerDevice);
  };
  const int width = pixel(span.to) - pixel(span.from) - 1;
  return {x + pixel(span.from), y, std::max(width, 1), measures_.row};
}

void MosaicPainter::DrawGpu(NodeId n, size_t g, int x, int y) {
  const Gpu& gpu = snapshot_.node(n).gpus[g];
  const GpuModel& model = snapshot_.model(snapshot_.node_model(n));
  const std::vector<std::pair<Tile, Span>> arranged = Arrange(model, tiles(n, g));
  std::vector<Span> spans;
  for (const auto& [tile, span] : arranged) spans.push_back(span);
  DrawIdle(n, g, x, y, spans);
  DrawFree(n, g, spans, x, y);
  for (const auto& [tile, span] : arranged) DrawPod(n, g, tile, BoxOf(span, x, y));
  if (gpu.healthy) return;
  const Box all = BoxOf({}, x, y);
  svg_.Line(x, y, x + all.width, y + all.height, "class=\"unhealthy\"");
  svg_.Line(x, y + all.height, x + all.width, y, "class=\"unhealthy\"");
}

// Instances that nobody holds yet; adds what they cover to `spans`.
void MosaicPainter::DrawIdle(NodeId n, size_t g, int x, int y, std::vector<Span>& spans) {
  const Node& node = snapshot_.node(n);
  const GpuModel& model = snapshot_.model(snapshot_.node_model(n));
  for (const GpuInstance& instance : node.gpus[g].instances) {
    const int profile = *model.FindProfile(instance.profile);
    if (std::ranges::any_of(tiles(n, g), [&](const Tile& tile) {
          return tile.profile == profile && tile.start == instance.start &&
                 tile.phase != PodPhase::kNominated;
        })) {
      continue;
    }
    const Span span = UnitsOf(model, profile, instance.start);
    const Box box = BoxOf(span, x, y);
    svg_.Rect({box.x, box.y, std::max(box.width - 1, 1), box.height - 1}, kIdleLook,
              absl::StrCat(node.name, ", GPU ", g, ": idle ", instance.profile, " at slice ",
                           instance.start));
    const bool is_covered = std::ranges::any_of(
        spans, [&](const Span& pod) { return pod.from < span.to && span.from < pod.to; });
    if (!is_covered) DrawLabel(box, "style=\"fill:#555\"", instance.profile);
    spans.push_back(span);
  }
}

// The room that `spans` leave.
void MosaicPainter::DrawFree(NodeId n, size_t g, const std::vector<Span>& spans, int x, int y) {
  const Node& node = snapshot_.node(n);
  const Gpu& gpu = node.gpus[g];
  const bool can_carve = gpu.mig == MigMode::kDynamic && gpu.healthy;
  const std::string where = absl::StrCat(node.name, ", GPU ", g, ": ");
  if (spans.empty()) {
    svg_.Rect(BoxOf({}, x, y), "class=\"free\"",
              absl::StrCat(where, "free", can_carve ? ", MIG on demand" : "",
                           gpu.healthy ? "" : ", unhealthy"));
    return;
  }
  const bool is_sliced = !gpu.instances.empty();
  for (const Span& span : Rest(spans)) {
    std::string text =
        absl::StrFormat("%sfree %d %%", where, 100 * (span.to - span.from) / kGpuUnitsPerDevice);
    if (is_sliced && can_carve) {
      absl::StrAppend(&text, "; ", RoomText(snapshot_.mig(snapshot_.node_model(n)), gpu));
    }
    svg_.Rect(BoxOf(span, x, y), "class=\"hole\"", text);
  }
}

// The part of a GPU: a profile, a percentage, or nothing for a whole one.
std::string MosaicPainter::PartText(NodeId n, const Tile& tile) const {
  if (tile.is_slice()) {
    const GpuModel& model = snapshot_.model(snapshot_.node_model(n));
    return model.profiles[static_cast<size_t>(tile.profile)].name;
  }
  if (tile.share == 0) return "";
  return absl::StrFormat("%.3g %%", 100.0 * tile.share / kGpuUnitsPerDevice);
}

std::string MosaicPainter::PodTooltip(NodeId n, size_t g, const Tile& tile) const {
  const PodRef ref = snapshot_.pod_ref(tile.pod);
  const std::string part = PartText(n, tile);
  std::string text =
      absl::StrCat(snapshot_.node(n).name, ", GPU ", g, ": ", ref.workload, "/", ref.pod_set, " ",
                   ref.index, " of queue ", snapshot_.queues().queue(QueueOf(tile)).name, ", ",
                   part.empty() ? "the whole GPU" : part);
  if (tile.is_slice()) absl::StrAppend(&text, " at slice ", tile.start);
  if (tile.phase == PodPhase::kReleasing) text += ", is leaving";
  if (tile.phase == PodPhase::kNominated) text += ", waits for this place";
  return text;
}

void MosaicPainter::DrawPod(NodeId n, size_t g, const Tile& tile, Box box) {
  const Rgb rgb = ColourOf(ranks_[static_cast<size_t>(QueueOf(tile).value())]);
  const bool runs = tile.phase == PodPhase::kRunning;
  const bool waits = tile.phase == PodPhase::kNominated;
  const std::string look =
      waits ? "class=\"nominated\" stroke=" + Hex(rgb)
            : absl::StrCat("class=\"", runs ? "pod" : "leaving", "\" fill=", Hex(rgb));
  const Box frame = {box.x + 1, box.y + 1, std::max(box.width - 2, 1), box.height - 2};
  svg_.Rect(waits ? frame : box, look, PodTooltip(n, g, tile));
  // Where some wait for others to leave, each has half the place for its name.
  const auto are_there = [&](PodPhase phase) {
    return std::ranges::any_of(tiles(n, g), [phase](const Tile& t) { return t.phase == phase; });
  };
  if (!runs && are_there(PodPhase::kReleasing) && are_there(PodPhase::kNominated)) {
    box.width /= 2;
    if (waits) box.x += box.width;
  }
  const PodRef ref = snapshot_.pod_ref(tile.pod);
  const std::string part = PartText(n, tile);
  DrawLabel(box, runs && rgb.is_dark() ? "style=\"fill:#fff\"" : "",
            absl::StrCat(waits ? "?" : "", ref.workload, "/", ref.pod_set, part.empty() ? "" : " ",
                         part));
}

void MosaicPainter::DrawLabel(const Box& box, std::string_view look, const std::string& text) {
  const int characters = (box.width - 8) / 7;
  if (!measures_.labelled || characters < 3) return;
  svg_.Text(box.x + 5, box.y + 14, look, Shorten(text, characters));
}

}  // namespace

std::string DrawMosaicSvg(const Snapshot& snapshot, const MosaicSvgOptions& options) {
  return MosaicPainter(snapshot, options).Paint(options.title);
}

}  // namespace tessera
