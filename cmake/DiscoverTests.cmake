# Lists a doctest program's cases and writes one add_test per case.
execute_process(COMMAND ${PROGRAM} --list-test-cases --no-intro --no-version
                OUTPUT_VARIABLE listing RESULT_VARIABLE status)
if(NOT status EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} --list-test-cases failed: ${listing}")
endif()
# Brackets and semicolons steer CMake's lists: put them away until a line is taken.
string(REPLACE "[" "<bt-open>" listing "${listing}")
string(REPLACE "]" "<bt-close>" listing "${listing}")
string(REPLACE ";" "<bt-semicolon>" listing "${listing}")
string(REPLACE "\n" ";" lines "${listing}")
set(text "")
foreach(line IN LISTS lines)
  string(REPLACE "<bt-open>" "[" line "${line}")
  string(REPLACE "<bt-close>" "]" line "${line}")
  string(REPLACE "<bt-semicolon>" ";" line "${line}")
  if(line STREQUAL "" OR line MATCHES "^\\[doctest\\]" OR line MATCHES "^=+$")
    continue()
  endif()
  # doctest reads commas as separators and backslash as escape in filters
  string(REPLACE "\\" "\\\\" filter "${line}")
  string(REPLACE "," "\\," filter "${filter}")
  string(APPEND text "add_test([==[${PREFIX}: ${line}]==] [==[${PROGRAM}]==] "
                     "[==[--test-case=${filter}]==] --no-intro --no-version)\n"
                     "set_tests_properties([==[${PREFIX}: ${line}]==] PROPERTIES "
                     "LABELS \"${LABELS}\" FAIL_REGULAR_EXPRESSION \"test cases: +0 \" "
                     "ENVIRONMENT [==[${ENVIRONMENT}]==])\n")
endforeach()
file(WRITE ${OUT} "${text}")
