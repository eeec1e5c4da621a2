#ifndef TESSERA_SRC_IO_NAMES_H_
#define TESSERA_SRC_IO_NAMES_H_

// The words of the files for the enumerations, by value.

#include <array>
#include <string_view>

namespace tessera::io_internal {

inline constexpr std::array<std::string_view, 3> kMigModes = {"off", "static", "dynamic"};
inline constexpr std::array<std::string_view, 4> kIsolations = {"any", "hardware", "gpu", "node"};
inline constexpr std::array<std::string_view, 6> kPhases = {"pending",   "nominated", "running",
                                                            "releasing", "succeeded", "failed"};
inline constexpr std::array<std::string_view, 3> kEffects = {"NoSchedule", "PreferNoSchedule",
                                                             "NoExecute"};
inline constexpr std::array<std::string_view, 2> kTolerationOperators = {"Equal", "Exists"};
inline constexpr std::array<std::string_view, 2> kEvidences = {"confirmed", "inferred"};

inline constexpr std::string_view kUnlimitedWord = "unlimited";
inline constexpr std::string_view kNeverWord = "never";
// The member that holds resources whose names are not to be second-guessed.
inline constexpr std::string_view kExtendedKey = "extended";
// The name that stands for every resource that is not named.
inline constexpr std::string_view kAllResources = "*";

template <typename E, typename Names>
constexpr std::string_view NameOf(const Names& names, E value) {
  return names[static_cast<size_t>(value)];
}

}  // namespace tessera::io_internal

#endif  // TESSERA_SRC_IO_NAMES_H_
