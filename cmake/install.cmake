# What a plugin is built with, beside the programs: headers of the rooms that it may call, and the settings to compile it
# with, for CMake (find_package(Millrace)) and for anything else (millrace-config).
include(CMakePackageConfigHelpers)

set(MR_INSTALL_HEADERS ${CMAKE_INSTALL_INCLUDEDIR}/millrace)
set(MR_INSTALL_CMAKE ${CMAKE_INSTALL_LIBDIR}/cmake/Millrace)
foreach(room ${MR_PLUGIN_ROOMS})
  if(NOT room STREQUAL "proto")
    install(DIRECTORY src/${room} DESTINATION ${MR_INSTALL_HEADERS} COMPONENT plugin FILES_MATCHING PATTERN "*.h")
  endif()
endforeach()
install(DIRECTORY ${PROJECT_BINARY_DIR}/proto/ DESTINATION ${MR_INSTALL_HEADERS} COMPONENT plugin FILES_MATCHING PATTERN "*.pb.h"
        PATTERN "CMakeFiles" EXCLUDE)

# Headers of protobuf, where the compiler does not look by itself.
set(MR_PLUGIN_INCLUDES "")
get_target_property(includes protobuf::libprotobuf INTERFACE_INCLUDE_DIRECTORIES)
foreach(folder ${includes})
  if(NOT folder STREQUAL "/usr/include")
    string(APPEND MR_PLUGIN_INCLUDES " -isystem ${folder}")
  endif()
endforeach()
# A plugin of the C++ tier shares memory with the programs, and sanitizers must see both sides of it.
set(MR_PLUGIN_SANITIZE "")
if(MILLRACE_SANITIZE)
  set(MR_PLUGIN_SANITIZE " -fsanitize=${MILLRACE_SANITIZE} -fno-omit-frame-pointer")
endif()
file(RELATIVE_PATH MR_HEADERS_FROM_PREFIX /prefix /prefix/${MR_INSTALL_HEADERS})

configure_file(cmake/millrace-config.in ${PROJECT_BINARY_DIR}/millrace-config @ONLY)
install(PROGRAMS ${PROJECT_BINARY_DIR}/millrace-config DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT plugin)

configure_package_config_file(cmake/MillraceConfig.cmake.in ${PROJECT_BINARY_DIR}/MillraceConfig.cmake
                              INSTALL_DESTINATION ${MR_INSTALL_CMAKE} PATH_VARS MR_INSTALL_HEADERS)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/MillraceConfigVersion.cmake COMPATIBILITY ExactVersion)
install(FILES ${PROJECT_BINARY_DIR}/MillraceConfig.cmake ${PROJECT_BINARY_DIR}/MillraceConfigVersion.cmake
        DESTINATION ${MR_INSTALL_CMAKE} COMPONENT plugin)
