# bt_room(name): every x.cpp of the room goes into the library `braintrace` through one object
# library; every x_test.cpp into the program test_<room>.
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
    if(BRAINTRACE_VERIFY)
      target_compile_definitions(bt_${name} PUBLIC BRAINTRACE_VERIFY)
    endif()
    target_sources(braintrace PRIVATE $<TARGET_OBJECTS:bt_${name}>)
  endif()
  if(BRAINTRACE_TESTS AND tests)
    bt_test_program(test_${name} SOURCES ${tests} LABELS ${name})
  endif()
endfunction()

add_library(bt_doctest_main OBJECT EXCLUDE_FROM_ALL ${PROJECT_SOURCE_DIR}/tests/doctest_main.cpp)

# A doctest program with one ctest entry per test case, labelled with its room.
function(bt_test_program name)
  cmake_parse_arguments(PROG "" "" "SOURCES;LABELS;LIBS" ${ARGN})
  add_executable(${name} ${PROG_SOURCES} $<TARGET_OBJECTS:bt_doctest_main>)
  target_link_libraries(${name} PRIVATE braintrace ${PROG_LIBS})
  target_compile_definitions(${name} PRIVATE BT_TESTS_DIR="${PROJECT_SOURCE_DIR}/tests")
  string(REPLACE "test_" "" prefix ${name})
  set(cases ${CMAKE_CURRENT_BINARY_DIR}/${name}_cases.cmake)
  add_custom_command(TARGET ${name} POST_BUILD
    COMMAND ${CMAKE_COMMAND} -DPROGRAM=$<TARGET_FILE:${name}> "-DLABELS=${PROG_LABELS}"
            -DOUT=${cases} -DPREFIX=${prefix} -P ${PROJECT_SOURCE_DIR}/cmake/DiscoverTests.cmake
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
