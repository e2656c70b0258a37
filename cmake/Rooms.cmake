# Headers nearly every file reads, compiled once: a third to two thirds of a small file's time.
add_library(bt_room_headers OBJECT ${PROJECT_SOURCE_DIR}/cmake/headers.cpp)
target_include_directories(bt_room_headers PUBLIC ${PROJECT_SOURCE_DIR})
target_link_libraries(bt_room_headers PUBLIC fmt::fmt)
target_precompile_headers(bt_room_headers PRIVATE
  <algorithm> <functional> <map> <memory> <set> <string> <vector> <fmt/format.h>
  ${PROJECT_SOURCE_DIR}/braintrace/ir/op_def.h)
# Tests check values, not speed: they are compiled without optimisation.
add_library(bt_test_headers OBJECT EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/cmake/headers.cpp)
target_include_directories(bt_test_headers PUBLIC ${PROJECT_SOURCE_DIR})
target_link_libraries(bt_test_headers PUBLIC fmt::fmt)
target_compile_options(bt_test_headers PRIVATE -O0)
target_precompile_headers(bt_test_headers PRIVATE
  <algorithm> <functional> <map> <memory> <set> <string> <vector> <doctest/doctest.h>
  ${PROJECT_SOURCE_DIR}/braintrace/ops/ops.h ${PROJECT_SOURCE_DIR}/braintrace/ir/op_def.h)

# The same for programs and for what only checks other code.
add_library(bt_program_headers OBJECT EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/cmake/headers.cpp)
target_compile_options(bt_program_headers PRIVATE -O0)
target_include_directories(bt_program_headers PUBLIC ${PROJECT_SOURCE_DIR})
target_link_libraries(bt_program_headers PUBLIC fmt::fmt)
target_precompile_headers(bt_program_headers PRIVATE
  <algorithm> <functional> <map> <memory> <set> <string> <vector> <fmt/format.h>
  ${PROJECT_SOURCE_DIR}/braintrace/nn/nn.h ${PROJECT_SOURCE_DIR}/braintrace/ops/ops.h
  ${PROJECT_SOURCE_DIR}/braintrace/train/learner.h)
# Prepared headers are never taken from a compiler cache: they remember the times of their files,
# and in another checkout `#pragma once` would not know these again.
set_target_properties(bt_room_headers bt_test_headers bt_program_headers PROPERTIES
                      CXX_COMPILER_LAUNCHER "")

# bt_link_library(target): what calls the library is compiled without optimisation; what both
# instantiate (vectors, maps) the linker takes from whoever comes first, so the library, whole,
# stands before the target's own objects.
function(bt_link_library target)
  target_link_libraries(${target} PRIVATE braintrace)
  get_target_property(type braintrace TYPE)
  if(type STREQUAL STATIC_LIBRARY)
    target_link_options(${target} PRIVATE
      LINKER:--whole-archive $<TARGET_FILE:braintrace> LINKER:--no-whole-archive)
  endif()
endfunction()

# bt_program(name sources...): an executable of this tree; -fPIC instead of -fPIE, as the
# headers are.
function(bt_program name)
  add_executable(${name} ${ARGN})
  bt_link_library(${name})
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE OFF)
  target_compile_options(${name} PRIVATE -fPIC -O0)
  target_precompile_headers(${name} REUSE_FROM bt_program_headers)
endfunction()

# bt_unity(target [most]): its files are compiled at once, or in batches of at most so many,
# where BRAINTRACE_UNITY asks for it. Files of a batch share their unnamed namespaces, so these
# names must differ within a room; a file with flags of its own stays alone.
function(bt_unity target)
  if(BRAINTRACE_UNITY)
    set(most 0)
    if(ARGC GREATER 1)
      set(most ${ARGV1})
    endif()
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE ${most})
    target_compile_options(${target} PRIVATE -Wno-subobject-linkage)
  endif()
endfunction()

# Rooms that only write programs: -Og compiles a sixth faster than -O1.
set(BT_WRITING_ROOMS transforms passes model nn etrace algo io view)

# bt_room(name): every x.cpp of the room goes into the library `braintrace` through one object
# library; every x_test.cpp into the program test_<room>. The room `testing` checks values, not
# speed: it is compiled without optimisation, and last, so that the linker takes what it
# instantiates from the other rooms.
function(bt_room name)
  set(dir ${CMAKE_CURRENT_SOURCE_DIR}/${name})
  file(GLOB sources CONFIGURE_DEPENDS ${dir}/*.cpp)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  if(sources)
    add_library(bt_${name} OBJECT ${sources})
    target_include_directories(bt_${name} PUBLIC ${PROJECT_SOURCE_DIR})
    target_link_libraries(bt_${name} PUBLIC fmt::fmt)
    if(name STREQUAL testing)
      target_compile_options(bt_${name} PRIVATE -O0)
      target_precompile_headers(bt_${name} REUSE_FROM bt_program_headers)
    else()
      target_precompile_headers(bt_${name} REUSE_FROM bt_room_headers)
    endif()
    if(name IN_LIST BT_WRITING_ROOMS)
      target_compile_options(bt_${name} PRIVATE $<$<CONFIG:Release>:-Og>)
    endif()
    bt_unity(bt_${name})
    target_sources(braintrace PRIVATE $<TARGET_OBJECTS:bt_${name}>)
  endif()
  if(BRAINTRACE_TESTS AND tests)
    bt_test_program(test_${name} SOURCES ${tests} LABELS ${name})
  endif()
endfunction()

# bt_part_of_room(room name files...): these files of a room as a target of their own,
# bt_<room>_<name>, for flags that the others do not have.
function(bt_part_of_room room name)
  list(TRANSFORM ARGN PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/${room}/ OUTPUT_VARIABLE files)
  get_target_property(rest bt_${room} SOURCES)
  list(REMOVE_ITEM rest ${files})
  set_property(TARGET bt_${room} PROPERTY SOURCES ${rest})
  add_library(bt_${room}_${name} OBJECT ${files})
  target_include_directories(bt_${room}_${name} PUBLIC ${PROJECT_SOURCE_DIR})
  target_link_libraries(bt_${room}_${name} PUBLIC fmt::fmt)
  bt_unity(bt_${room}_${name})
  target_sources(braintrace PRIVATE $<TARGET_OBJECTS:bt_${room}_${name}>)
endfunction()

# What every test finds in its environment: leaks that are not ours to mend.
set(BT_TEST_ENVIRONMENT "")
if(BRAINTRACE_SANITIZE MATCHES address)
  set(BT_TEST_ENVIRONMENT "LSAN_OPTIONS=print_suppressions=0:suppressions=\
${PROJECT_SOURCE_DIR}/tests/lsan_suppressions.txt")
endif()
if(BRAINTRACE_SANITIZE MATCHES thread)
  set(BT_TEST_ENVIRONMENT
      "TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/tsan_suppressions.txt")
endif()
# For the tests a directory adds itself; its last line.
function(bt_set_test_environment)
  get_property(names DIRECTORY PROPERTY TESTS)
  if(names AND BT_TEST_ENVIRONMENT)
    set_property(TEST ${names} APPEND PROPERTY ENVIRONMENT "${BT_TEST_ENVIRONMENT}")
  endif()
endfunction()

add_library(bt_doctest_main OBJECT EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/tests/doctest_main.cpp)
target_compile_options(bt_doctest_main PRIVATE -O0)

# A doctest program with one ctest entry per test case, labelled with its room.
function(bt_test_program name)
  cmake_parse_arguments(PROG "" "" "SOURCES;LABELS;LIBS" ${ARGN})
  # An object library, because executables are compiled as -fPIE and the headers as -fPIC.
  add_library(${name}_objects OBJECT EXCLUDE_FROM_ALL ${PROG_SOURCES})
  target_link_libraries(${name}_objects PUBLIC braintrace ${PROG_LIBS})
  target_compile_definitions(${name}_objects PRIVATE
                             BT_TESTS_DIR="${PROJECT_SOURCE_DIR}/tests")
  target_compile_options(${name}_objects PRIVATE -O0)
  target_precompile_headers(${name}_objects REUSE_FROM bt_test_headers)
  bt_unity(${name}_objects)
  add_executable(${name} $<TARGET_OBJECTS:${name}_objects> $<TARGET_OBJECTS:bt_doctest_main>)
  bt_link_library(${name})
  target_link_libraries(${name} PRIVATE ${PROG_LIBS})
  set_property(GLOBAL APPEND PROPERTY BT_TEST_PROGRAMS ${name})
  string(REPLACE "test_" "" prefix ${name})
  set(cases ${CMAKE_CURRENT_BINARY_DIR}/${name}_cases.cmake)
  add_custom_command(TARGET ${name} POST_BUILD
    COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:${name}> "-DLABELS=${PROG_LABELS}"
            -DOUT=${cases} -DPREFIX=${prefix} "-DENVIRONMENT=${BT_TEST_ENVIRONMENT}" -P ${PROJECT_SOURCE_DIR}/cmake/DiscoverTests.cmake
    BYPRODUCTS ${cases} VERBATIM)
  # A program that was not built is one failing test, not an error of ctest itself.
  set(include ${CMAKE_CURRENT_BINARY_DIR}/${name}_include.cmake)
  file(WRITE ${include}
    "if(EXISTS [==[${cases}]==])\n  include([==[${cases}]==])\nelse()\n"
    "  add_test(${prefix}.not_built ${name}_is_not_built)\n"
    "  set_tests_properties(${prefix}.not_built PROPERTIES LABELS \"${PROG_LABELS}\")\n"
    "endif()\n")
  set_property(DIRECTORY APPEND PROPERTY TEST_INCLUDE_FILES ${include})
endfunction()
