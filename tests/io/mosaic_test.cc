#include "tessera/io/mosaic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tessera/io/snapshot_json.h"
#include "tests/support/status_matchers.h"

namespace tessera {
namespace {

TEST(MosaicTest, WhatIsLeavingAndWhatWaitsForIt) {
  // Between kinds, between profiles, and over idle instances.
  const absl::StatusOr<Snapshot> snapshot = ParseSnapshot(R"({"apiVersion": "tessera/v1",
    "nodes": [{"name": "n", "gpu_model": "A100-40GB", "mig": "dynamic", "gpus": [{},
      {"instances": [{"profile": "3g.20gb", "start": 4}]},
      {"instances": [{"profile": "3g.20gb", "start": 0}, {"profile": "1g.5gb", "start": 5}]},
      {}, {"healthy": false}]}],
    "workloads": [
      {"name": "a", "gang": {"pod_sets": [{"name": "s", "count": 2, "request": {"gpu": 1}}]},
       "pods": [{"pod_set": "s", "index": 0, "phase": "releasing", "node": "n", "gpus": [0]},
                {"pod_set": "s", "index": 1, "node": "n", "gpus": [3]}]},
      {"name": "b", "gang": {"pod_sets": [{"name": "s", "request": {"mig": "3g.20gb"}}]},
       "pods": [{"pod_set": "s", "index": 0, "phase": "releasing", "node": "n",
                 "slices": [{"gpu": 1, "profile": "3g.20gb", "start": 4}]}]},
      {"name": "c", "gang": {"pod_sets": [{"name": "s", "count": 3, "request": {"mig": "1g.5gb"}}]},
       "pods": [{"pod_set": "s", "index": 0, "phase": "nominated", "node": "n",
                 "slices": [{"gpu": 0, "profile": "1g.5gb", "start": 0}]},
                {"pod_set": "s", "index": 1, "phase": "nominated", "node": "n",
                 "slices": [{"gpu": 1, "profile": "1g.5gb", "start": 5}]},
                {"pod_set": "s", "index": 2, "phase": "nominated", "node": "n",
                 "slices": [{"gpu": 2, "profile": "1g.5gb", "start": 1}]}]}]})");
  ASSERT_THAT(snapshot, IsOk());
  EXPECT_EQ(DrawMosaic(*snapshot), R"(n (A100-40GB)  1 of 5 GPUs without pods
  gpu 0     |(a/s)                                                          |
    then    |?c/s 1g|.......|.......|.......|.......|.......|.......|.......|
  gpu 1     |.......|.......|.......|.......|(b/s) 3g.20gb                  |
    then    |.......|.......|.......|.......|.......|?c/s 1g|.......|.......|
  gpu 2     |.......|?c/s 1g|.......|.......|.......|<1g.5gb|.......|.......|
  gpu 3     |a/s                                                            |
  gpu 4     unhealthy
)");
}

}  // namespace
}  // namespace tessera
