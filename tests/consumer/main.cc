// A host: it needs no flag or include path beyond what the targets of tessera carry.

#include <cstdio>
#include <string>

#include "tessera/base/ids.h"
#include "tessera/base/version.h"
#include "tessera/resources/quantity.h"
#include "tessera/resources/units.h"

int main() {
  const auto cpu = tessera::ParseQuantity("1.5", tessera::kMillisPerCore, tessera::Rounding::kUp);
  if (!cpu.ok() || *cpu != 1500) return 1;
  if (tessera::Version() != tessera::kVersion) return 1;
  std::printf("tessera %s\n", std::string(tessera::Version()).c_str());
  return tessera::NodeId(0).valid() ? 0 : 1;
}
