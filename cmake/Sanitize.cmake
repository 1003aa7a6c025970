# SPDX-License-Identifier: Apache-2.0
# Builds of `make test-asan`, `make test-tsan` and `make test-debug`, each in a
# directory of its own.

set(HEDDLE_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize takes them")
if(HEDDLE_SANITIZE)
  add_compile_options(-fsanitize=${HEDDLE_SANITIZE} -fno-sanitize-recover=all
    -fno-omit-frame-pointer -O1 -g1)
  add_link_options(-fsanitize=${HEDDLE_SANITIZE})
  # Instrumented, headers are most of what a file of the libraries is compiled
  # for. tests/ has a precompiled header.
  set(CMAKE_UNITY_BUILD ON)
  set(CMAKE_UNITY_BUILD_BATCH_SIZE 16)
endif()

include(cmake/OneDefinition.cmake)

# The programs whose tests run there: those of the device soft with one definition
# (heddle_debug_tests); those with threads with ThreadSanitizer; else what the
# device soft is made of and stands on, where the core of the host library has no
# part. A model of the NIC takes too long to build.
add_custom_target(heddle_sanitized_tests)
add_custom_target(heddle_debug_tests)
set(HEDDLE_SANITIZED_DIRECTORIES
  differential driver firmware host/nic host/ofi host/semantics sim soft)
if(HEDDLE_SANITIZE MATCHES "thread")
  set(HEDDLE_SANITIZED_DIRECTORIES driver host sim soft)
elseif(HEDDLE_ONE_DEFINITION)
  set(HEDDLE_SANITIZED_DIRECTORIES soft)
endif()
foreach(directory IN LISTS HEDDLE_SANITIZED_DIRECTORIES)
  if(NOT IS_DIRECTORY ${PROJECT_SOURCE_DIR}/tests/${directory})
    message(FATAL_ERROR "cmake/Sanitize.cmake names tests/${directory}, which is not there")
  endif()
endforeach()
list(JOIN HEDDLE_SANITIZED_DIRECTORIES | directories)
set(HEDDLE_SANITIZED_DIRECTORIES "^(${directories})(/|$)")
set(HEDDLE_MODEL_USERS heddle_sim_nic heddle_sim_rtl heddle_test_nodes)

# heddle_sanitized_test(program RESULT threads library...): RESULT is whether
# this build runs the tests of `program`; only one of these leaves any out.
function(heddle_sanitized_test program result threads)
  set(${result} TRUE PARENT_SCOPE)
  if(NOT HEDDLE_SANITIZE AND NOT HEDDLE_ONE_DEFINITION)
    return()
  endif()
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR
    BASE_DIRECTORY ${PROJECT_SOURCE_DIR}/tests OUTPUT_VARIABLE below)
  string(REGEX MATCH "${HEDDLE_SANITIZED_DIRECTORIES}" runs "${below}")
  if(HEDDLE_SANITIZE MATCHES "thread" AND NOT threads)
    set(runs)
  endif()
  foreach(library IN LISTS ARGN)
    if(library IN_LIST HEDDLE_MODEL_USERS OR library MATCHES "_model$")
      set(runs)
    endif()
  endforeach()
  if(runs AND HEDDLE_ONE_DEFINITION)
    add_dependencies(heddle_debug_tests ${program})
  elseif(runs)
    add_dependencies(heddle_sanitized_tests ${program})
  else()
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()
