# find_package(braintrace) for consumers: library, public headers, package files.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
set(BT_PACKAGE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/braintrace)

install(TARGETS braintrace EXPORT braintraceTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS braintrace_cli RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} OPTIONAL)
# _impl.h files are private to their room.
install(DIRECTORY ${PROJECT_SOURCE_DIR}/braintrace DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h" PATTERN "*_impl.h" EXCLUDE)
install(EXPORT braintraceTargets NAMESPACE braintrace:: DESTINATION ${BT_PACKAGE_DIR})

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/braintraceConfig.cmake.in
                              ${PROJECT_BINARY_DIR}/braintraceConfig.cmake
                              INSTALL_DESTINATION ${BT_PACKAGE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/braintraceConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/braintraceConfig.cmake
              ${PROJECT_BINARY_DIR}/braintraceConfigVersion.cmake
        DESTINATION ${BT_PACKAGE_DIR})
