# herdsim_library(NAME name [QUICK] [INTERNAL] [UNITY] [DEPS lib...] [LINK target...] SOURCES file...)
#   A static library herdsim_<name> (alias herdsim::<name>) of the current folder. DEPS are Herdsim libraries and are
#   the only folders whose headers it may include: tests/check_includes reads them back from the file written here.
#   LINK names third-party targets. Include paths start at the repository root. QUICK: compiled with -O1, for code
#   that formats and parses and is never in a loop that counts. INTERNAL: not installed, for what only our programs link.
#   UNITY: a few sources a translation unit, so that heavy headers are read once for all of them; names in anonymous
#   namespaces then differ between the sources of a folder. Tests are built so too. -DHERDSIM_UNITY=OFF: each source alone.
# herdsim_test(NAME name LABEL label [DEPS lib...] SOURCES file...)
#   One GoogleTest binary a folder, registered with CTest under one label, compiled with -O1.
# herdsim_benchmark(NAME name [DEPS lib...] SOURCES file...)
#   One Google Benchmark binary; never run by CTest.
include_guard(GLOBAL)

add_library(herdsim_warnings INTERFACE)
target_compile_options(herdsim_warnings INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow
                                                  -Wno-missing-field-initializers
                                                  -Wno-restrict) # g++ 12: false positives in std::string::operator+
add_library(herdsim_options INTERFACE)
target_compile_features(herdsim_options INTERFACE cxx_std_20)
# Fused multiply-add would make results depend on the processor.
target_compile_options(herdsim_options INTERFACE -ffp-contract=off)
if(HERDSIM_SANITIZE)
  target_compile_options(herdsim_options INTERFACE -fsanitize=address,undefined -fno-sanitize-recover=undefined
                                                   -fno-omit-frame-pointer)
  target_link_options(herdsim_options INTERFACE -fsanitize=address,undefined)
endif()

set_target_properties(herdsim_options PROPERTIES EXPORT_NAME options)
install(TARGETS herdsim_options EXPORT herdsim)

set_property(GLOBAL PROPERTY HERDSIM_LIBRARIES "")

option(HERDSIM_UNITY "Compile several sources of a folder at once where that saves time" ON)
function(herdsim_unity target)
  set_target_properties(${target} PROPERTIES UNITY_BUILD ${HERDSIM_UNITY} UNITY_BUILD_BATCH_SIZE 6)
endfunction()

function(herdsim_library)
  cmake_parse_arguments(ARG "QUICK;INTERNAL;UNITY" "NAME" "DEPS;LINK;SOURCES" ${ARGN})
  set(target herdsim_${ARG_NAME})
  add_library(${target} STATIC ${ARG_SOURCES})
  if(ARG_UNITY)
    herdsim_unity(${target})
  endif()
  if(ARG_QUICK)
    target_compile_options(${target} PRIVATE -O1)
  endif()
  add_library(herdsim::${ARG_NAME} ALIAS ${target})
  target_include_directories(${target} PUBLIC $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>
                                              $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/herdsim>)
  target_link_libraries(${target} PUBLIC herdsim_options PRIVATE $<BUILD_INTERFACE:herdsim_warnings>)
  foreach(dep IN LISTS ARG_DEPS)
    if(NOT TARGET herdsim_${dep})
      message(FATAL_ERROR "herdsim_${ARG_NAME} depends on herdsim_${dep}, which is not declared yet")
    endif()
    target_link_libraries(${target} PUBLIC herdsim_${dep})
  endforeach()
  target_link_libraries(${target} PUBLIC ${ARG_LINK})
  file(RELATIVE_PATH folder "${PROJECT_SOURCE_DIR}" "${CMAKE_CURRENT_SOURCE_DIR}")
  if(NOT ARG_INTERNAL)
    set_target_properties(${target} PROPERTIES EXPORT_NAME ${ARG_NAME})
    install(TARGETS ${target} EXPORT herdsim ARCHIVE COMPONENT development)
    file(GLOB headers CONFIGURE_DEPENDS "${CMAKE_CURRENT_SOURCE_DIR}/*.h")
    install(FILES ${headers} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/herdsim/${folder} COMPONENT development)
  endif()
  list(JOIN ARG_DEPS "," deps)
  set_property(GLOBAL APPEND PROPERTY HERDSIM_LIBRARIES "${ARG_NAME}|${folder}|${deps}")
endfunction()

function(herdsim_test)
  cmake_parse_arguments(ARG "" "NAME;LABEL" "DEPS;LINK;SOURCES" ${ARGN})
  if(NOT HERDSIM_BUILD_TESTS)
    return()
  endif()
  set(target ${ARG_NAME}_test)
  add_executable(${target} ${ARG_SOURCES})
  herdsim_unity(${target})
  list(TRANSFORM ARG_DEPS PREPEND herdsim_)
  target_link_libraries(${target} PRIVATE ${ARG_DEPS} ${ARG_LINK} herdsim_warnings GTest::gtest GTest::gmock
                                          GTest::gtest_main)
  target_compile_options(${target} PRIVATE -O1) # compiling them takes longer than running them
  if(NOT TARGET herdsim_test_headers)
    # Precompiled once for all tests: every one of them takes the same options.
    file(WRITE ${PROJECT_BINARY_DIR}/test_headers.cc "")
    add_library(herdsim_test_headers OBJECT ${PROJECT_BINARY_DIR}/test_headers.cc)
    target_link_libraries(herdsim_test_headers PRIVATE herdsim_options herdsim_warnings GTest::gtest GTest::gmock)
    target_compile_options(herdsim_test_headers PRIVATE -O1)
    target_precompile_headers(herdsim_test_headers PRIVATE <gtest/gtest.h> <gmock/gmock.h>)
  endif()
  target_precompile_headers(${target} REUSE_FROM herdsim_test_headers)
  target_compile_definitions(${target} PRIVATE HERDSIM_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  add_test(NAME ${ARG_NAME} COMMAND ${target} --gtest_brief=1)
  set_tests_properties(${ARG_NAME} PROPERTIES LABELS "${ARG_LABEL}" TIMEOUT 300)
endfunction()

function(herdsim_benchmark)
  cmake_parse_arguments(ARG "" "NAME" "DEPS;LINK;SOURCES" ${ARGN})
  if(NOT HERDSIM_BUILD_BENCHMARKS)
    return()
  endif()
  set(target ${ARG_NAME}_bench)
  add_executable(${target} ${ARG_SOURCES})
  list(TRANSFORM ARG_DEPS PREPEND herdsim_)
  target_link_libraries(${target} PRIVATE ${ARG_DEPS} ${ARG_LINK} herdsim_warnings benchmark::benchmark
                                          benchmark::benchmark_main)
endfunction()

# Writes what herdsim_library() declared for tests/check_includes.py. Call after the last library.
function(herdsim_write_libraries file)
  get_property(libraries GLOBAL PROPERTY HERDSIM_LIBRARIES)
  set(lines "")
  foreach(library IN LISTS libraries)
    string(APPEND lines "${library}\n")
  endforeach()
  file(WRITE "${file}" "${lines}")
endfunction()
