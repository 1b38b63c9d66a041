# What `cmake --install` puts where, beside the programs and libraries of their own folders, and the Debian package:
#   cmake --install build/release --prefix /opt/herdsim      find_package(herdsim) finds it there
#   cpack --config build/release/CPackConfig.cmake           herdsim_<version>_<architecture>.deb
include(CMakePackageConfigHelpers)

set(cmake_folder ${CMAKE_INSTALL_LIBDIR}/cmake/herdsim)
install(EXPORT herdsim NAMESPACE herdsim:: FILE herdsimTargets.cmake DESTINATION ${cmake_folder} COMPONENT development)
configure_package_config_file(${CMAKE_CURRENT_LIST_DIR}/herdsimConfig.cmake.in ${PROJECT_BINARY_DIR}/herdsimConfig.cmake
                              INSTALL_DESTINATION ${cmake_folder})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/herdsimConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/herdsimConfig.cmake ${PROJECT_BINARY_DIR}/herdsimConfigVersion.cmake
        DESTINATION ${cmake_folder} COMPONENT development)
install(FILES README.md CHANGELOG.md LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT programs)
install(DIRECTORY docs DESTINATION ${CMAKE_INSTALL_DOCDIR} COMPONENT programs)

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME herdsim)
set(CPACK_PACKAGE_CONTACT "The Herdsim developers <herdsim@example.org>")
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "${PROJECT_DESCRIPTION}")
set(CPACK_DEBIAN_PACKAGE_SECTION science)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_STRIP_FILES ON)
# Programs alone; a second package would hold the libraries.
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_COMPONENTS_ALL programs)
set(CPACK_DEBIAN_PROGRAMS_PACKAGE_NAME herdsim)
include(CPack)

# The public headers as pages, in <build>/doxygen/html.
add_custom_target(docs COMMAND ${CMAKE_COMMAND} -DSOURCE=${PROJECT_SOURCE_DIR} -DBINARY=${PROJECT_BINARY_DIR}/doxygen
                               -P ${PROJECT_SOURCE_DIR}/cmake/doxygen.cmake VERBATIM)
