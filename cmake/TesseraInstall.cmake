# Installs the libraries and headers, and describes them to find_package(tessera),
# in the install tree and in the build tree.
include(CMakePackageConfigHelpers)

get_property(rooms GLOBAL PROPERTY TESSERA_ROOMS)
list(TRANSFORM rooms PREPEND tessera_ OUTPUT_VARIABLE room_targets)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tessera)

install(TARGETS ${room_targets} tessera_all EXPORT tesseraTargets)
install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/tessera
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(EXPORT tesseraTargets NAMESPACE tessera:: DESTINATION ${package_dir})
export(EXPORT tesseraTargets NAMESPACE tessera::
       FILE ${PROJECT_BINARY_DIR}/tesseraTargets.cmake)

configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/tesseraConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/tesseraConfig.cmake
                              INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/tesseraConfigVersion.cmake
                                 COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tesseraConfig.cmake
              ${PROJECT_BINARY_DIR}/tesseraConfigVersion.cmake
        DESTINATION ${package_dir})
