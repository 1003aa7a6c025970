# SPDX-License-Identifier: Apache-2.0
# Each class has one definition in all that is linked together. The compiler sees
# one file at a time and the linker only names; with -flto the link compares the
# types themselves. Also for a project that has nothing else of this one.

option(HEDDLE_ONE_DEFINITION
  "A link fails that finds two definitions of a class (GCC)" OFF)
if(HEDDLE_ONE_DEFINITION)
  if(NOT CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    message(FATAL_ERROR "HEDDLE_ONE_DEFINITION needs GCC")
  endif()
  set(CMAKE_INTERPROCEDURAL_OPTIMIZATION ON)
  # In one partition, so that the symbol versions, which are assembler directives,
  # stay with the functions that they name.
  add_link_options(-flto-partition=one -Werror=odr -Werror=lto-type-mismatch)
endif()
