# SPDX-License-Identifier: Apache-2.0
# Files of `make install`, and their places. The libraries find each other by
# relative paths.
include(GNUInstallDirs)
# A production machine takes this component and leaves `simulator` out, the device
# `rtl`.
set(CMAKE_INSTALL_DEFAULT_COMPONENT_NAME heddle)
set(lib ${CMAKE_INSTALL_LIBDIR})

install(TARGETS heddle LIBRARY DESTINATION ${lib})
install(TARGETS heddle_fi LIBRARY DESTINATION ${lib}/libfabric)
install(TARGETS heddle-soft LIBRARY DESTINATION ${lib}/heddle)
add_custom_target(heddle_installed)
add_dependencies(heddle_installed
  heddle heddle_fi heddle-soft heddle_tool heddle_manual)
if(HEDDLE_RTL_DEVICE)
  install(TARGETS heddle-sim LIBRARY DESTINATION ${lib}/heddle
    COMPONENT simulator)
  add_dependencies(heddle_installed heddle-sim)
endif()
# The relative symlink itself.
install(FILES ${CMAKE_BINARY_DIR}/lib/heddle/drop-in/libfabric.so.1
  DESTINATION ${lib}/heddle/drop-in)

file(RELATIVE_PATH from_bin /${CMAKE_INSTALL_BINDIR} /${lib})
set_target_properties(heddle_tool PROPERTIES INSTALL_RPATH \$ORIGIN/${from_bin})
install(TARGETS heddle_tool RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})

# Only on request (--component conformance): it is a test, of any provider.
if(TARGET heddle-conformance)
  install(TARGETS heddle-conformance RUNTIME
    DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT conformance EXCLUDE_FROM_ALL)
endif()

install(FILES host/include/rdma/fi_ext_heddle.h
  DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/rdma)
file(RELATIVE_PATH HEDDLE_PC_PREFIX /${lib}/pkgconfig /)
string(REGEX REPLACE "/$" "" HEDDLE_PC_PREFIX "${HEDDLE_PC_PREFIX}")
configure_file(cmake/heddle.pc.in ${CMAKE_BINARY_DIR}/heddle.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/heddle.pc DESTINATION ${lib}/pkgconfig)

install(FILES hw/contract/gen/heddle_uet.lua
  DESTINATION ${CMAKE_INSTALL_DATADIR}/heddle)
install(FILES tools/heddle/heddle.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${CMAKE_BINARY_DIR}/man/fi_heddle.7
  DESTINATION ${CMAKE_INSTALL_MANDIR}/man7)
install(FILES CHANGELOG.md LICENSE README.md SECURITY.md
  DESTINATION ${CMAKE_INSTALL_DOCDIR})
