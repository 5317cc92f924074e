# The rooms below src/, from the ground up (src/rooms.txt).
file(STRINGS ${PROJECT_SOURCE_DIR}/src/rooms.txt MR_ROOMS REGEX "^[a-z]")
string(REPLACE " " ";" MR_ROOMS "${MR_ROOMS}")
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/rooms.txt)

# Compiles the sources of a target many at a time, so that headers and templates are paid for once. The names in the
# unnamed namespaces of one folder must differ; SKIP_UNITY_BUILD_INCLUSION sets a source apart that cannot follow.
# CMake's own unity files name absolute paths, which keeps a compiler cache from serving two checkouts: these name paths
# from the root of the checkout. A source with settings of its own is compiled by itself, so this waits until the folder's
# list has said all of them.
function(mr_unity target batch)
  if(MILLRACE_UNITY)
    cmake_language(EVAL CODE "cmake_language(DEFER CALL mr_write_unity_sources ${target} ${batch})")
  endif()
endfunction()
function(mr_write_unity_sources target batch)
  get_target_property(sources ${target} SOURCES)
  set(apart "")
  set(together "")
  foreach(source IN LISTS sources)
    set(list together)
    foreach(property SKIP_UNITY_BUILD_INCLUSION GENERATED COMPILE_OPTIONS COMPILE_DEFINITIONS)
      get_source_file_property(value "${source}" ${property})
      if(value)
        set(list apart)
      endif()
    endforeach()
    list(APPEND ${list} ${source})
  endforeach()
  # Units of one size: a last one of a single source would pay for all headers again.
  list(LENGTH together count)
  math(EXPR units "(${count} + ${batch} - 1) / ${batch}")
  set(number 0)
  while(number LESS units)
    math(EXPR begin "${number} * ${count} / ${units}")
    math(EXPR length "(${number} + 1) * ${count} / ${units} - ${begin}")
    list(SUBLIST together ${begin} ${length} of_unit)
    set(text "")
    foreach(source IN LISTS of_unit)
      get_filename_component(path ${source} ABSOLUTE)
      file(RELATIVE_PATH path ${PROJECT_SOURCE_DIR} ${path})
      string(APPEND text "#include \"${path}\"\n")
    endforeach()
    set(unity ${CMAKE_CURRENT_BINARY_DIR}/unity/${target}_${number}.cc)
    file(CONFIGURE OUTPUT ${unity} CONTENT "${text}" @ONLY)
    list(APPEND apart ${unity})
    math(EXPR number "${number} + 1")
  endwhile()
  set_target_properties(${target} PROPERTIES SOURCES "${apart}")
  target_include_directories(${target} PRIVATE ${PROJECT_SOURCE_DIR})
  # A source of a unity build is an included file, and g++ takes its unnamed namespace for a header's.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()

# mr_library(ROOM [WARM|COLD] SOURCES a.cc … DEPS rooms and libraries …): one folder below src/ is one target. What is
# COLD runs once a job; what is WARM is as fast without the last of what the compiler can do (cmake/options.cmake).
function(mr_library room)
  cmake_parse_arguments(ARG "WARM;COLD" "" "SOURCES;DEPS" ${ARGN})
  add_library(mr_${room} STATIC ${ARG_SOURCES})
  target_include_directories(mr_${room} PUBLIC ${PROJECT_SOURCE_DIR}/src)
  target_link_libraries(mr_${room} PUBLIC ${ARG_DEPS} PRIVATE mr_options)
  if(ARG_WARM)
    target_link_libraries(mr_${room} PRIVATE mr_warm_options)
  endif()
  if(ARG_COLD)
    target_link_libraries(mr_${room} PRIVATE mr_cold_options)
  endif()
  mr_unity(mr_${room} 40)
endfunction()

# mr_binary(NAME SOURCES a.cc … DEPS …): a program in bin/. What it does often is in the rooms.
function(mr_binary name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE ${ARG_DEPS} mr_options mr_cold_options)
  mr_unity(${name} 8)
  install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endfunction()

# The rooms that plugins may call, and whose headers are installed for them.
set(MR_PLUGIN_ROOMS core proto kernels batch program comm features config model table runtime reader metrics ranks datafeed ops dataset
    serving device_worker job plugin)

# mr_plugin_host(PROGRAM): the program holds these rooms whole, not only what it calls itself, and shows their symbols to
# the plugins that it loads.
function(mr_plugin_host program)
  set(archives "")
  foreach(room ${MR_PLUGIN_ROOMS})
    string(APPEND archives ",$<TARGET_FILE:mr_${room}>")
    target_link_libraries(${program} PRIVATE mr_${room})
  endforeach()
  target_link_options(${program} PRIVATE "LINKER:--whole-archive${archives},--no-whole-archive")
  set_target_properties(${program} PROPERTIES ENABLE_EXPORTS ON)
endfunction()

# mr_test(ROOM [ONE_THREAD] [PROCESS_EACH] SOURCES a_test.cc … DEPS …): one test program a room, one ctest entry a TEST.
# With ONE_THREAD no test of it starts a thread, so that ThreadSanitizer has nothing to see there. Sanitizers run a program
# as one entry, unless its tests need a process each: to start thousands takes longer than the tests.
function(mr_test room)
  cmake_parse_arguments(ARG "ONE_THREAD;PROCESS_EACH" "" "SOURCES;DEPS" ${ARGN})
  if(ARG_ONE_THREAD AND MILLRACE_SANITIZE STREQUAL "thread")
    return()
  endif()
  add_executable(${room}_test ${ARG_SOURCES})
  target_include_directories(${room}_test PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(${room}_test PRIVATE ${ARG_DEPS} test_paths GTest::gmock GTest::gtest_main mr_options
                                             mr_test_options)
  # Its operators new and delete must not be inlined into the tests.
  set_source_files_properties(../allocation_counter.cc ../../allocation_counter.cc PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
  mr_unity(${room}_test 16)
  if(MILLRACE_SANITIZE AND NOT ARG_PROCESS_EACH)
    add_test(NAME ${room} COMMAND ${room}_test)
    set_tests_properties(${room} PROPERTIES TIMEOUT 1200 LABELS unit)
  else()
    gtest_discover_tests(${room}_test TEST_PREFIX ${room}. DISCOVERY_TIMEOUT 120 PROPERTIES TIMEOUT 300 LABELS unit)
  endif()
endfunction()

# mr_fuzz(NAME SOURCES a.cc DEPS …): a libFuzzer program with MILLRACE_FUZZ; otherwise a ctest entry that replays
# tests/fuzz/corpus/NAME through the same entry point, so that targets never rot. They start no thread: see mr_test.
function(mr_fuzz name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  if(MILLRACE_SANITIZE STREQUAL "thread")
    return()
  endif()
  if(MILLRACE_FUZZ)
    add_executable(fuzz_${name} ${ARG_SOURCES})
    target_link_options(fuzz_${name} PRIVATE -fsanitize=fuzzer)
    if(NOT TARGET fuzz_targets)
      add_custom_target(fuzz_targets)
    endif()
    add_dependencies(fuzz_targets fuzz_${name})
  else()
    add_executable(fuzz_${name} ${ARG_SOURCES} ${PROJECT_SOURCE_DIR}/tests/fuzz/replay_main.cc)
    add_test(NAME fuzz_replay.${name} COMMAND fuzz_${name} ${PROJECT_SOURCE_DIR}/tests/fuzz/corpus/${name})
  endif()
  target_include_directories(fuzz_${name} PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_link_libraries(fuzz_${name} PRIVATE ${ARG_DEPS} mr_options)
endfunction()

# mr_bench(NAME SOURCES a.cc … DEPS …): a Google Benchmark program in bin/bench_NAME.
function(mr_bench name)
  cmake_parse_arguments(ARG "" "" "SOURCES;DEPS" ${ARGN})
  add_executable(bench_${name} ${ARG_SOURCES})
  target_include_directories(bench_${name} PRIVATE ${PROJECT_SOURCE_DIR}/bench)
  target_link_libraries(bench_${name} PRIVATE ${ARG_DEPS} benchmark::benchmark_main mr_options)
endfunction()
