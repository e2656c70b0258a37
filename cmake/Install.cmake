# find_package(braintrace) for consumers.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
install(TARGETS braintrace EXPORT braintraceTargets
        ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(DIRECTORY ${PROJECT_SOURCE_DIR}/braintrace DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}
        FILES_MATCHING PATTERN "*.h")
install(EXPORT braintraceTargets NAMESPACE braintrace::
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/braintrace)
file(WRITE ${CMAKE_BINARY_DIR}/braintraceConfig.cmake
  "include(CMakeFindDependencyMacro)\nfind_dependency(fmt)\n"
  "include(\${CMAKE_CURRENT_LIST_DIR}/braintraceTargets.cmake)\n")
write_basic_package_version_file(${CMAKE_BINARY_DIR}/braintraceConfigVersion.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/braintraceConfig.cmake
              ${CMAKE_BINARY_DIR}/braintraceConfigVersion.cmake
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/braintrace)
