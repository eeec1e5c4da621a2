#include <cstdio>
#include <cstdlib>
#include <string>

#include "bench/study/fgd/replay.h"
using namespace tessera;
using namespace tessera::study;
int main(int c, char** v) {
  int seeds = atoi(v[1]);
  for (std::string t : {"default", "gpuspec33", "multigpu50", "gpushare100"}) {
    auto T = ReadTrace("/work/shared/data", t);
    if (!T.ok()) {
      puts(std::string(T.status().message()).c_str());
      return 1;
    }
    for (int p = (c > 2 ? atoi(v[2]) : 0); p < (c > 3 ? atoi(v[3]) : kPolicies); ++p) {
      double s = 0, tt = 0;
      for (int k = 0; k < seeds; k++) {
        auto a = Arrivals(*T, 42 + k, 130);
        auto r = Replay(*T, a, (Policy)p, 42 + k);
        s += r.allocated[100];
        tt += r.seconds;
      }
      printf("%s %s %.3f  %.3fs\n", t.c_str(), std::string(kPolicyNames[p]).c_str(),
             100 - s / seeds, tt / seeds);
      fflush(stdout);
    }
  }
}
