# How everything of tessera is compiled: warnings, and no fused multiply-add, so
# that a double in a report is the same on every machine. (Whether warnings are
# errors is CMAKE_COMPILE_WARNING_AS_ERROR.) g++ 12 sees overlaps in string
# concatenation that are not there (GCC bug 105651).
function(tessera_compile_options target)
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow -ffp-contract=off
                                            $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
  # With precompiled headers it sees overflows, too, that are not there.
  if(TESSERA_PRECOMPILE AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-stringop-overflow -Wno-array-bounds)
  endif()
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
endfunction()

# tessera_precompile(<target> <kind> <header>...)
#
# Under TESSERA_PRECOMPILE: precompiles the headers for the first target of the kind;
# its others, which must be compiled with the same options, use the same.
function(tessera_precompile target kind)
  if(NOT TESSERA_PRECOMPILE)
    return()
  endif()
  get_property(first GLOBAL PROPERTY TESSERA_PRECOMPILED_${kind})
  if(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
  else()
    target_precompile_headers(${target} PRIVATE ${ARGN})
    set_property(GLOBAL PROPERTY TESSERA_PRECOMPILED_${kind} ${target})
  endif()
endfunction()

# tessera_add_room(<room> [DEPS <room>...] [LIBS <target>...] [HEADERS <target>...])
#
# Adds the library tessera_<room>, also named tessera::<room>, of src/<room>/*.cc
# and include/tessera/<room>/*.h, and appends it to the global property
# TESSERA_ROOMS.
#   DEPS     rooms its headers include
#   LIBS     libraries its headers include; who installs tessera needs them
#   HEADERS  header-only libraries that only its sources include; who uses an
#            installed tessera does not need them
function(tessera_add_room room)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "DEPS;LIBS;HEADERS")
  set(target tessera_${room})
  file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${room}/*.cc)
  add_library(${target} ${sources})
  add_library(tessera::${room} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${room})
  target_compile_features(${target} PUBLIC cxx_std_20)
  tessera_compile_options(${target})
  target_include_directories(
    ${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
                     $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>
              PRIVATE ${PROJECT_SOURCE_DIR})
  list(TRANSFORM arg_DEPS PREPEND tessera_)
  target_link_libraries(${target} PUBLIC ${arg_DEPS} ${arg_LIBS})
  foreach(library IN LISTS arg_HEADERS)
    target_include_directories(
      ${target} SYSTEM PRIVATE $<TARGET_PROPERTY:${library},INTERFACE_INCLUDE_DIRECTORIES>)
  endforeach()
  tessera_precompile(${target} room <algorithm> <functional> <map> <memory> <optional> <set> <span>
                     <string> <vector> <absl/container/flat_hash_map.h> <absl/numeric/int128.h>
                     <absl/status/statusor.h> <absl/strings/str_cat.h>)
  set_property(GLOBAL APPEND PROPERTY TESSERA_ROOMS ${room})
endfunction()
