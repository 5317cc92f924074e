# Build options and the one interface target that carries our compiler flags.

option(MILLRACE_TESTS "build the tests" ON)
option(MILLRACE_BENCH "build the benchmarks" OFF)
option(MILLRACE_FUZZ "build the fuzz targets with libFuzzer (clang)" OFF)
set(MILLRACE_PYTHON AUTO CACHE STRING "build the Python package's module: ON, OFF, or AUTO where its needs are at hand")
set(MILLRACE_JPEG AUTO CACHE STRING "read JPEG pictures: ON, OFF, or AUTO where libjpeg is at hand")
set(MILLRACE_MPI AUTO CACHE STRING "let ranks of a job talk through MPI: ON, OFF, or AUTO where MPI's headers are at hand")
option(MILLRACE_UNITY "compile the sources of a room many at a time, which makes a whole build faster" OFF)
option(MILLRACE_WERROR "treat warnings as errors" ON)
set(MILLRACE_SANITIZE "" CACHE STRING "comma-separated sanitizers: address,undefined or thread")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  # A second checkout, wherever it lies, finds what the first one compiled.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=true ${CCACHE})
endif()

add_library(mr_options INTERFACE)
# Objects name sources from the root of the checkout, so that a compiler cache serves every checkout; a debugger that is
# started there finds them.
add_compile_options(-ffile-prefix-map=${PROJECT_SOURCE_DIR}=.)
target_compile_options(mr_options INTERFACE -Wall -Wextra -Wpedantic -Wconversion -Wshadow -fno-math-errno)
# g++ 12 sees overlapping copies in "a" + std::string where there are none (GCC bug 105651).
target_compile_options(mr_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict>)
# clang takes it for a part of -Wconversion, g++ does not.
target_compile_options(mr_options INTERFACE $<$<CXX_COMPILER_ID:Clang>:-Wno-sign-conversion>)
if(MILLRACE_WERROR)
  target_compile_options(mr_options INTERFACE -Werror)
endif()
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  target_compile_options(mr_options INTERFACE -O3)
endif()

# What is measured or shipped is in the rooms' libraries; the tests themselves are only as fast as they need be. Linked
# after mr_options, so that its level is the one that counts. At -O1 a test takes twice as long to compile.
add_library(mr_test_options INTERFACE)
if(MILLRACE_SANITIZE STREQUAL "thread")
  target_compile_options(mr_test_options INTERFACE -O1)
else()
  target_compile_options(mr_test_options INTERFACE -O0)
endif()
# With sanitizers g++ warns of the stop_token's own members in a std::thread.
if(MILLRACE_SANITIZE)
  target_compile_options(mr_test_options INTERFACE $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)
endif()

# Many loops over whole tensors: -O3's copies of each loop cost a newcomer's first build most of a minute, and no job ran
# faster for them (docs/benchmarks.md).
add_library(mr_warm_options INTERFACE)
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  target_compile_options(mr_warm_options INTERFACE -O2 -ftree-vectorize -fvect-cost-model=dynamic)
endif()

# What runs once a job, or costs nothing beside the operators and the parser that it calls: a newcomer's first build ends
# a minute earlier for it.
add_library(mr_cold_options INTERFACE)
if(CMAKE_BUILD_TYPE STREQUAL "Release")
  target_compile_options(mr_cold_options INTERFACE -Og)
elseif(MILLRACE_SANITIZE MATCHES "address")
  target_compile_options(mr_cold_options INTERFACE -O0)
endif()

# Sanitizers reach generated code and tests as well, so they are set for the directory, not on mr_options.
if(MILLRACE_SANITIZE)
  add_compile_options(-fsanitize=${MILLRACE_SANITIZE} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${MILLRACE_SANITIZE})
endif()
if(MILLRACE_FUZZ)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
