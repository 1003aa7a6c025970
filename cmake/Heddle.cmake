# SPDX-License-Identifier: Apache-2.0
# Compilers, warnings and the functions that the subdirectories use.

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "" FORCE)
  # Line tables, for backtraces and profiles: types and variables, which a debugger
  # wants, take a quarter of the compilation. CMAKE_BUILD_TYPE=Debug has them.
  foreach(flags IN ITEMS CMAKE_C_FLAGS_RELWITHDEBINFO CMAKE_CXX_FLAGS_RELWITHDEBINFO)
    string(REGEX REPLACE "-g( |$)" "-g1\\1" ${flags} "${${flags}}")
    set(${flags} "${${flags}}" CACHE STRING "" FORCE)
  endforeach()
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 11)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/archive)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)

find_program(HEDDLE_CCACHE ccache)
if(HEDDLE_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${HEDDLE_CCACHE})
  # It stores users of precompiled headers with these alone.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros ${HEDDLE_CCACHE})
endif()

if(HEDDLE_CCACHE)
  set(HEDDLE_CCACHE_OR_NOTHING ${HEDDLE_CCACHE})
endif()

include(cmake/Sanitize.cmake)

find_package(Threads REQUIRED)
option(HEDDLE_TESTS "Build the tests: needs GoogleTest" ON)
if(HEDDLE_TESTS)
  find_package(GTest REQUIRED)
  include(GoogleTest)
endif()
find_package(verilator QUIET HINTS /usr/share/verilator)
# Building the NIC's model takes minutes.
option(HEDDLE_RTL_DEVICE "The device rtl (libheddle-sim.so): needs Verilator"
  ${verilator_FOUND})
if(HEDDLE_TESTS OR HEDDLE_RTL_DEVICE)
  find_package(verilator REQUIRED HINTS /usr/share/verilator)
endif()

# Linked PRIVATE by every target of ours.
add_library(heddle_warnings INTERFACE)
target_compile_options(heddle_warnings INTERFACE
  $<$<COMPILE_LANGUAGE:CXX>:-Wall -Wextra -Wshadow -Wconversion>)
if(NOT HEDDLE_SANITIZE)  # Instrumented code provokes warnings of its own.
  target_compile_options(heddle_warnings INTERFACE
    $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-Werror>)
endif()

# Product version for C++: HEDDLE_VERSION, a string.
add_library(heddle_version INTERFACE)
target_compile_definitions(heddle_version INTERFACE
  HEDDLE_VERSION="${PROJECT_VERSION}")

option(HEDDLE_FUZZ "Build the fuzzers: needs clang, and counted lines" OFF)

# Counters of all models of this build, for `make fuzz` and `make coverage`, which
# build apart: a list of `line`, `toggle`.
set(HEDDLE_RTL_COVERAGE "" CACHE STRING "Coverage that the models count")
set(HEDDLE_COVERAGE_ARGS ${HEDDLE_RTL_COVERAGE})
list(TRANSFORM HEDDLE_COVERAGE_ARGS PREPEND --coverage-)

# clang compiles the C++ of a model of the NIC with -O1 in less than half of the time
# that GCC takes with -O2, and the model runs as fast.
find_program(HEDDLE_CLANGXX clang++)
set(HEDDLE_MODEL_CXX ${CMAKE_CXX_COMPILER})
set(HEDDLE_NIC_OPT_FAST -O2)
if(HEDDLE_CLANGXX)
  set(HEDDLE_MODEL_CXX ${HEDDLE_CLANGXX})
  set(HEDDLE_NIC_OPT_FAST -O1)
endif()

# Run-time library of Verilated models, one copy for all.
if(verilator_FOUND)
  add_library(heddle_verilated STATIC
    ${VERILATOR_ROOT}/include/verilated.cpp
    ${VERILATOR_ROOT}/include/verilated_fst_c.cpp
    ${VERILATOR_ROOT}/include/verilated_threads.cpp)
  target_include_directories(heddle_verilated SYSTEM PUBLIC
    ${VERILATOR_ROOT}/include ${VERILATOR_ROOT}/include/vltstd)
  target_compile_options(heddle_verilated PRIVATE -O2 -w)
  target_compile_definitions(heddle_verilated PUBLIC
    VM_TRACE=1 VM_TRACE_FST=1 VM_COVERAGE=$<BOOL:${HEDDLE_RTL_COVERAGE}> VM_SC=0)
  if(HEDDLE_RTL_COVERAGE)
    target_sources(heddle_verilated PRIVATE
      ${VERILATOR_ROOT}/include/verilated_cov.cpp)
  endif()
  find_library(HEDDLE_ZLIB z REQUIRED)
  target_link_libraries(heddle_verilated PUBLIC Threads::Threads ${HEDDLE_ZLIB})
endif()

# The C++ of every model, uncompiled: what clang-tidy needs to read its users.
add_custom_target(heddle_model_sources)

# heddle_verilate(NAME target TOP module [PREFIX class] [SOURCES sv...]
#   [PARAMETERS Name=value...] [ARGS verilator...] [OPT_FAST f] [OPT_SLOW f]
#   [JOBS n] [TRACE])
# A target to link that holds the Verilated `module` as C++ class `class`
# (default V<module>). Runs at build time, so a broken module breaks only its
# own target. Packages come first by themselves; modules that SOURCES does not
# name, `module` too, are found in hw/rtl by file name. With JOBS 1 (the default)
# the model is one translation unit, which costs a small one a fifth of the
# time; TRACE lets it write waveforms.
function(heddle_verilate)
  cmake_parse_arguments(A "TRACE" "NAME;TOP;PREFIX;OPT_FAST;OPT_SLOW;JOBS"
    "SOURCES;PARAMETERS;ARGS" ${ARGN})
  if(NOT A_PREFIX)
    set(A_PREFIX V${A_TOP})
  endif()
  if(NOT A_OPT_FAST)
    set(A_OPT_FAST -O1)
  endif()
  if(NOT A_OPT_SLOW)
    set(A_OPT_SLOW -O0)
  endif()
  if(NOT A_JOBS)
    set(A_JOBS 1)
  endif()
  set(parallel 0)
  if(A_JOBS GREATER 1)
    set(parallel 1)
  endif()
  set(trace)
  if(A_TRACE)
    set(trace --trace-fst)
  endif()
  set(rtl ${PROJECT_SOURCE_DIR}/hw/rtl)
  file(GLOB packages CONFIGURE_DEPENDS ${rtl}/heddle_pkg.sv ${rtl}/*/*_pkg.sv)
  set(search)
  file(GLOB directories CONFIGURE_DEPENDS LIST_DIRECTORIES true ${rtl}/*)
  foreach(directory IN LISTS directories)
    if(IS_DIRECTORY ${directory})
      list(APPEND search -y ${directory})
    endif()
  endforeach()
  set(sources)
  foreach(source IN LISTS A_SOURCES)
    cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR}
      OUTPUT_VARIABLE path)
    if(NOT IS_ABSOLUTE ${source} AND NOT EXISTS ${path})
      set(path ${PROJECT_SOURCE_DIR}/${source})
    endif()
    list(APPEND sources ${path})
  endforeach()
  if(NOT sources)
    file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${rtl}/${A_TOP}.sv)
  endif()
  list(TRANSFORM A_PARAMETERS PREPEND -G)
  set(directory ${CMAKE_CURRENT_BINARY_DIR}/${A_NAME}.verilated)
  set(archive ${directory}/${A_PREFIX}__ALL.a)
  add_custom_command(OUTPUT ${directory}/sources
    COMMAND ${PROJECT_SOURCE_DIR}/cmake/verilate.sh
      ${VERILATOR_BIN} ${directory} ${A_PREFIX}
      -Wall --assert --no-timing ${trace} ${HEDDLE_COVERAGE_ARGS}
      --top-module ${A_TOP}
      -I${rtl}/common -y ${rtl} ${search} ${A_PARAMETERS} ${A_ARGS}
      ${rtl}/lint/waivers.vlt
      ${PROJECT_SOURCE_DIR}/hw/contract/gen/heddle_contract_pkg.sv
      ${packages} ${sources}
    BYPRODUCTS ${directory}/${A_PREFIX}.h
    DEPFILE ${directory}/depfile
    DEPENDS ${PROJECT_SOURCE_DIR}/cmake/verilate.sh ${sources}
    COMMENT "Verilating ${A_TOP} for ${A_NAME}" VERBATIM)
  # Not our make flags: Verilator's make is no part of an outer job server.
  add_custom_command(OUTPUT ${archive}
    COMMAND ${CMAKE_COMMAND} -E rm -f ${archive}
    COMMAND env -u MAKEFLAGS -u MFLAGS make -s -j ${A_JOBS} -C ${directory}
      -f ${A_PREFIX}.mk ${A_PREFIX}__ALL.a VM_PARALLEL_BUILDS=${parallel}
      CXX=${HEDDLE_MODEL_CXX} LINK=${HEDDLE_MODEL_CXX} USER_CPPFLAGS=-w
      OBJCACHE=${HEDDLE_CCACHE_OR_NOTHING}
      "OPT_FAST=${A_OPT_FAST}" "OPT_SLOW=${A_OPT_SLOW}" > ${directory}/make.log
    DEPENDS ${directory}/sources
    COMMENT "Compiling ${A_TOP} for ${A_NAME}" VERBATIM)
  add_custom_target(${A_NAME}_sources DEPENDS ${directory}/sources)
  add_custom_target(${A_NAME}_archive DEPENDS ${archive})
  add_dependencies(heddle_model_sources ${A_NAME}_sources)
  add_library(${A_NAME} INTERFACE)
  add_dependencies(${A_NAME} ${A_NAME}_archive)
  target_include_directories(${A_NAME} SYSTEM INTERFACE ${directory})
  target_link_libraries(${A_NAME} INTERFACE ${archive} heddle_verilated)
endfunction()

# heddle_verilate_nic(NAME target DATA_W bits [PREFIX class] [ARGS ...]
#   [OPT_FAST f])
# The whole NIC, built for simulation speed; one target per configuration,
# shared by all that simulate it.
function(heddle_verilate_nic)
  cmake_parse_arguments(A "" "NAME;DATA_W;PREFIX;OPT_FAST" "ARGS" ${ARGN})
  if(NOT A_OPT_FAST)
    set(A_OPT_FAST ${HEDDLE_NIC_OPT_FAST})
  endif()
  cmake_host_system_information(RESULT jobs QUERY NUMBER_OF_LOGICAL_CORES)
  heddle_verilate(NAME ${A_NAME} TOP heddle_nic PREFIX "${A_PREFIX}"
    SOURCES ${PROJECT_SOURCE_DIR}/hw/rtl/heddle_nic.sv
    PARAMETERS DataW=${A_DATA_W} OPT_FAST ${A_OPT_FAST} JOBS ${jobs} TRACE
    ARGS -O3 --x-assign fast --x-initial fast --output-split 20000 ${A_ARGS})
endfunction()

# Ends a test that hangs, and no other: a machine under load takes many times
# what an idle one does.
set(HEDDLE_TEST_LIMIT_S 600)

# heddle_add_test_headers(): what most tests include, compiled once for the tests of
# this directory, which saves a third of their compilation. A program, since it needs the compiler's
# flags of one. Not in the build of `make test-debug`, where a test that does not
# include what it uses fails.
function(heddle_add_test_headers)
  if(HEDDLE_ONE_DEFINITION)
    return()
  endif()
  set(source ${CMAKE_BINARY_DIR}/gen/test_headers.cc)
  file(CONFIGURE OUTPUT ${source} CONTENT "")
  add_executable(heddle_test_headers ${source})
  target_link_libraries(heddle_test_headers PRIVATE heddle_warnings
    GTest::gtest_main)
  target_precompile_headers(heddle_test_headers PRIVATE
    <gtest/gtest.h> <algorithm> <array> <cstring> <deque> <functional> <map>
    <memory> <optional> <random> <set> <span> <string> <thread> <utility>
    <vector>)
  if(CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-fpch-preprocess>)  # For ccache.
  endif()
endfunction()

# heddle_test(NAME name SOURCES cc... [LIBS target...] [LABEL suite]
#   [SERIAL] [THREADS])
# A GoogleTest program; its tests belong to the suite named by LABEL, or else
# by the directory under tests/. With THREADS, ThreadSanitizer watches them.
function(heddle_test)
  cmake_parse_arguments(A "SERIAL;THREADS" "NAME;LABEL" "SOURCES;LIBS" ${ARGN})
  if(NOT A_LABEL)
    cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR
      BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/tests OUTPUT_VARIABLE below)
    string(REGEX MATCH "^[^/]+" A_LABEL "${below}")
  endif()
  add_executable(${A_NAME} ${A_SOURCES})
  set_target_properties(${A_NAME} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/tests)
  target_include_directories(${A_NAME} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${A_NAME} PRIVATE ${A_LIBS} heddle_contract
    heddle_warnings GTest::gtest_main)
  if(TARGET heddle_test_headers)
    target_precompile_headers(${A_NAME} REUSE_FROM heddle_test_headers)
  endif()
  heddle_sanitized_test(${A_NAME} runs ${A_THREADS} ${A_LIBS})
  if(NOT runs)
    return()
  endif()
  set(serial)
  if(A_SERIAL)
    set(serial RUN_SERIAL TRUE)
  endif()
  gtest_discover_tests(${A_NAME} DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS ${A_LABEL} TIMEOUT ${HEDDLE_TEST_LIMIT_S} ${serial})
endfunction()

# The programs around one Verilated module.
add_custom_target(heddle_rtl_tests)

option(HEDDLE_TRACE_UNITS "Unit models can write waveforms" OFF)

# heddle_rtl_test(NAME name TOP module TESTS cc... [SOURCES sv...]
#   [PREFIX class] [PARAMETERS Name=value...] [LIBS ...] [ARGS verilator...]
#   [LABEL suite] [TIMEOUT s])
# A GoogleTest program around one Verilated module. For waveforms of it, configure
# with -DHEDDLE_TRACE_UNITS=ON.
function(heddle_rtl_test)
  cmake_parse_arguments(A "" "NAME;TOP;PREFIX;LABEL"
    "SOURCES;TESTS;PARAMETERS;LIBS;ARGS" ${ARGN})
  set(trace)
  if(HEDDLE_TRACE_UNITS)
    set(trace TRACE)
  endif()
  heddle_verilate(NAME ${A_NAME}_model TOP ${A_TOP} PREFIX "${A_PREFIX}"
    SOURCES ${A_SOURCES} PARAMETERS ${A_PARAMETERS} ARGS ${A_ARGS} ${trace})
  heddle_test(NAME ${A_NAME} SOURCES ${A_TESTS} LABEL "${A_LABEL}"
    LIBS ${A_NAME}_model heddle_rtl_records heddle_failure_recorder
      ${A_LIBS})
  add_dependencies(heddle_rtl_tests ${A_NAME})
endfunction()

# heddle_python_test(FILE py [LABEL suite] [ENVIRONMENT k=v...])
# Each method of each unittest class of the file, as a test of its own.
function(heddle_python_test)
  # These builds are for C++ alone: sanitizers would have to instrument Python.
  if(HEDDLE_SANITIZE OR HEDDLE_ONE_DEFINITION)
    return()
  endif()
  cmake_parse_arguments(A "" "FILE;LABEL" "ENVIRONMENT" ${ARGN})
  set(file ${CMAKE_CURRENT_SOURCE_DIR}/${A_FILE})
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${file})
  execute_process(COMMAND python3 -B ${PROJECT_SOURCE_DIR}/cmake/list_tests.py
    ${file} OUTPUT_VARIABLE names COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "[^\n]+" names "${names}")
  foreach(name IN LISTS names)
    add_test(NAME ${name} COMMAND python3 -B ${file} -v ${name})
    set_tests_properties(${name} PROPERTIES LABELS ${A_LABEL}
      TIMEOUT ${HEDDLE_TEST_LIMIT_S} SKIP_REGULAR_EXPRESSION "\\(skipped=[0-9]"
      ENVIRONMENT "${A_ENVIRONMENT}")
  endforeach()
endfunction()
