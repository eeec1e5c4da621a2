#ifndef TESSERA_BASE_VERSION_H_
#define TESSERA_BASE_VERSION_H_

// Which tessera this is. The build reads the version from here.

#include <string_view>

namespace tessera {

// The version of the headers. Semantic: before 1.0 a new minor version may change
// signatures, a new patch version may not.
inline constexpr int kVersionMajor = 0;
inline constexpr int kVersionMinor = 1;
inline constexpr int kVersionPatch = 0;
inline constexpr std::string_view kVersion = "0.1.0";

// The version of the library that was linked, "0.1.0". It differs from the
// constants above when a host mixes the headers of one release with the archive
// of another.
std::string_view Version();

}  // namespace tessera

#endif  // TESSERA_BASE_VERSION_H_
