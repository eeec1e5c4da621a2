#include "tessera/cluster/topology.h"

#include <gmock/gmock.h>

#include "tests/support/snapshot_builder_for_tests.h"

namespace tessera {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Node NodeIn(std::string name, std::string block, std::string rack) {
  Node node = MakeNode(std::move(name));
  if (!block.empty()) node.topology["block"] = std::move(block);
  if (!rack.empty()) node.topology["rack"] = std::move(rack);
  return node;
}

// Sorted by path, as `Topology` asks; rack r1 is in both blocks.
const std::vector<Node>& SortedNodes() {
  static const auto& nodes = *new std::vector<Node>{
      NodeIn("n0", "", ""),     NodeIn("n1", "", "r9"),   NodeIn("n2", "b1", "r1"),
      NodeIn("n3", "b1", "r1"), NodeIn("n4", "b1", "r2"), NodeIn("n5", "b2", "r1")};
  return nodes;
}

const Topology& Levels() {
  static const auto& topology = *new Topology({"block", "rack", "node"}, SortedNodes());
  return topology;
}

TEST(TopologyTest, DomainsAreIntervals) {
  EXPECT_THAT(Levels().domains(0),
              ElementsAre(TopologyDomain{"b1", {2, 5}}, TopologyDomain{"b2", {5, 6}}));
  EXPECT_THAT(Levels().domains(1),
              ElementsAre(TopologyDomain{"/r9", {1, 2}}, TopologyDomain{"b1/r1", {2, 4}},
                          TopologyDomain{"b1/r2", {4, 5}}, TopologyDomain{"b2/r1", {5, 6}}));
}

TEST(TopologyTest, InnermostNodeLevelIsTheNode) {
  ASSERT_EQ(Levels().domains(2).size(), 6u);
  EXPECT_EQ(Levels().domains(2)[3].path, "b1/r1/n3");
  EXPECT_EQ(Levels().domain_of(NodeId(3), 2), DomainId(3));
  // A level of that name further out is like any other.
  const Topology outer({"node", "rack"}, SortedNodes());
  EXPECT_THAT(outer.domains(0), IsEmpty());
}

TEST(TopologyTest, DomainOf) {
  EXPECT_FALSE(Levels().domain_of(NodeId(0), 0).valid());
  EXPECT_FALSE(Levels().domain_of(NodeId(0), 1).valid());
  EXPECT_FALSE(Levels().domain_of(NodeId(1), 0).valid());
  EXPECT_EQ(Levels().domain_of(NodeId(1), 1), DomainId(0));
  EXPECT_EQ(Levels().domain_of(NodeId(3), 1), DomainId(1));
  EXPECT_EQ(Levels().domain_of(NodeId(5), 1), DomainId(3));
}

TEST(TopologyTest, DomainsWithin) {
  EXPECT_EQ(Levels().DomainsWithin(1, {2, 5}), (NodeRange{1, 3}));
  EXPECT_EQ(Levels().DomainsWithin(1, {0, 6}), (NodeRange{0, 4}));
  EXPECT_EQ(Levels().DomainsWithin(1, {3, 5}), (NodeRange{2, 3}));
  EXPECT_TRUE(Levels().DomainsWithin(1, {3, 4}).empty());
  EXPECT_EQ(Levels().DomainsWithin(2, {2, 4}), (NodeRange{2, 4}));
}

TEST(TopologyTest, FindLevel) {
  EXPECT_EQ(Levels().FindLevel("rack"), 1);
  EXPECT_EQ(Levels().FindLevel("row"), std::nullopt);
}

TEST(TopologyTest, RangesOfNodes) {
  EXPECT_EQ(Intersect({0, 4}, {2, 9}), (NodeRange{2, 4}));
  EXPECT_TRUE(Intersect({0, 2}, {2, 9}).empty());
  EXPECT_TRUE((NodeRange{2, 4}).contains(NodeId(3)));
  EXPECT_FALSE((NodeRange{2, 4}).contains(NodeId(4)));
}

}  // namespace
}  // namespace tessera
