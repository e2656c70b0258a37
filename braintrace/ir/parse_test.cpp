// SPDX-License-Identifier: Apache-2.0
// Every way a text can be wrong, with the message a user sees.
#include <string>

#include <doctest/doctest.h>

#include "braintrace/ops/registry.h"

namespace parse_test {

using namespace braintrace;

namespace {

struct Bad {
  std::string text, message;
};

void check_refused(const Bad& bad, ErrorKind kind = ErrorKind::value) {
  CAPTURE(bad.text);
  try {
    parse(bad.text);
    FAIL("the text was accepted");
  } catch (const UserError& e) {
    CHECK(std::string(e.what()) == bad.message);
    CHECK(e.kind() == kind);
  }
}

std::string constant(const std::string& literal) {
  return "in %0 = constant {value=" + literal + "} out %0";
}

}  // namespace

TEST_CASE("a text must begin with in and end after out") {
  check_refused({"", "parse: line 1: expected 'in', found ''"});
  check_refused({"input out", "parse: line 1: expected 'in', found 'input out'"});
  check_refused({"in %0:f32[]", "parse: line 1: expected 'out' or a node, found ''"});
  check_refused({"in out rest",
                 "parse: line 1: expected the end of the text, "
                 "found 'rest'"});
  check_refused({"in %0:f32[] output %0",
                 "parse: line 1: expected 'out' or a node, found 'output %0'"});
}

TEST_CASE("a message gives the line and what stands there, shortened") {
  check_refused({"in %0:f32[2]\n%1 = tanh %0\n%2 = nosuch %1\nout %2",
                 "parse: line 3: unknown op 'nosuch', found ' %1'"});
  const std::string tail(60, 'x');
  check_refused(
      {"in\n\nout " + tail, "parse: line 3: expected the end of the text, found '" +
                                tail.substr(0, 40) + "'"});
}

TEST_CASE("value names are numbers, defined once, before use") {
  check_refused(
      {"in %x:f32[] out", "parse: line 1: 'x' is not an integer, found ':f32[] out'"});
  check_refused(
      {"in %0:f32[] %0:f32[] out", "parse: line 1: %0 is defined twice, found ' out'"});
  check_refused({"in %0:f32[] %0 = tanh %0 out",
                 "parse: line 1: %0 is defined twice, found 'out'"});
  check_refused({"in %0:f32[] %1 = tanh %2 out",
                 "parse: line 1: value %2 is not defined here, found ' out'"});
  check_refused({"in out %0", "parse: line 1: value %0 is not defined here, found ''"});
  check_refused({"in %99999999999999999999:f32[] out",
                 "parse: line 1: '99999999999999999999' is not an integer, "
                 "found ':f32[] out'"});
}

TEST_CASE("an input needs a type") {
  check_refused({"in %0 out", "parse: line 1: expected '=', found 'out'"});
  check_refused({"in %0:f16[2] out",
                 "parse: line 1: 'f16' is not an element type, found '[2] out'"});
  check_refused({"in %0:f32 out", "parse: line 1: expected '[', found 'out'"});
  check_refused({"in %0:f32[2 out", "parse: line 1: expected ']', found 'out'"});
  check_refused(
      {"in %0:f32[a] out", "parse: line 1: 'a' is not an integer, found '] out'"});
  check_refused(
      {"in %0:f32[1.5] out", "parse: line 1: '1.5' is not an integer, found '] out'"});
}

TEST_CASE("shapes are checked, with the line") {
  check_refused({"in\n%0:f32[-1] out",
                 "parse: line 2: shape: dimensions must be >= 0, "
                 "got [-1], found ' out'"});
  check_refused({"in %0:f32[1099511627776,2] out",
                 "parse: line 1: shape: shape [1099511627776,2] has more than 2^40 "
                 "elements, found ' out'"});
}

TEST_CASE("a node is declarations, =, op") {
  check_refused(
      {"in %0:f32[] %1 tanh %0 out", "parse: line 1: expected '=', found 'tanh %0 out'"});
  check_refused({"in %0:f32[] %1, tanh %0 out",
                 "parse: line 1: expected '%', found 'tanh %0 out'"});
  check_refused(
      {"in %0:f32[] %1 = %0 out", "parse: line 1: unknown op '', found '%0 out'"});
}

TEST_CASE("outputs must be as many and of the types the op gives") {
  check_refused({"in %0:f32[] %1, %2 = tanh %0 out",
                 "parse: line 1: tanh gives 1 outputs, 2 are named, found 'out'"});
  check_refused({"in %0:f32[2] %1:f32[3] = tanh %0 out",
                 "parse: line 1: %1 is f32[3], but tanh gives f32[2], found 'out'"});
}

TEST_CASE("what an op refuses is reported with its kind") {
  check_refused({"in %0:f32[] %1 = tanh %0 %0 out",
                 "parse: line 1: tanh: needs 1 inputs, got 2, found 'out'"});
  check_refused({"in %0:i32[] %1 = tanh %0 out",
                 "parse: line 1: tanh: needs f32 or f64, got i32[], found 'out'"},
                ErrorKind::type);
  check_refused({"in %0:f32[] %1 = tanh {axis=1} %0 out",
                 "parse: line 1: tanh: unknown attribute 'axis', found 'out'"});
  check_refused({"in %0:f32[] %1 = convert %0 out",
                 "parse: line 1: convert: missing attribute 'dtype', found 'out'"});
  check_refused({"in %0:f32[] %1 = convert {dtype=1} %0 out",
                 "parse: line 1: convert: attribute 'dtype' must be dtype, got integer, "
                 "found 'out'"},
                ErrorKind::type);
  check_refused({"in %0:f32[2] %1 = broadcast {shape=[-2]} %0 out",
                 "parse: line 1: broadcast: dimensions must be >= 0, got [-2], "
                 "found 'out'"});
}

TEST_CASE("attributes are name=value, each once") {
  check_refused({"in %0 = constant {} out",
                 "parse: line 1: expected an attribute name, found '} out'"});
  check_refused(
      {"in %0 = constant {value 1} out", "parse: line 1: expected '=', found '1} out'"});
  check_refused({"in %0 = constant {value=} out",
                 "parse: line 1: expected an attribute value, found '} out'"});
  check_refused(
      {"in %0 = constant {value=1 out", "parse: line 1: expected '}', found 'out'"});
  check_refused({"in %0 = constant {value=1, value=2} out",
                 "parse: line 1: attribute 'value' is given twice, found '=2} out'"});
}

TEST_CASE("numbers must be numbers and fit") {
  check_refused({"in %0 = constant {value=12x} out",
                 "parse: line 1: '12x' is not an integer, found '} out'"});
  check_refused({"in %0 = constant {value=1.2.3} out",
                 "parse: line 1: '1.2.3' is not a number, found '} out'"});
  check_refused(
      {"in %0 = constant {value=9223372036854775808} out",
       "parse: line 1: '9223372036854775808' is not an integer, found '} out'"});
  check_refused({"in %0 = constant {value=1e999} out",
                 "parse: line 1: '1e999' is not a number, found '} out'"});
}

TEST_CASE("text must end") {
  check_refused(
      {"in %0 = constant {value=\"abc", "parse: line 1: unterminated text, found ''"});
  check_refused(
      {"in %0 = constant {value=\"abc\\", "parse: line 1: unterminated text, found ''"});
}

TEST_CASE("array literals hold exactly their elements") {
  check_refused({constant("f32[2](1)"),
                 "parse: line 1: f32[2] needs 2 elements, got 1, found '} out %0'"});
  check_refused({constant("f32[2](1, 2, 3)"),
                 "parse: line 1: f32[2] needs 2 elements, got 3, found '} out %0'"});
  check_refused(
      {constant("f32[2](1, 2"), "parse: line 1: expected ')', found '} out %0'"});
  check_refused({constant("f32[1] 1"), "parse: line 1: expected '(', found '1} out %0'"});
  check_refused({constant("f32[1](one)"),
                 "parse: line 1: 'one' is not a number, found ')} out %0'"});
  check_refused({constant("bool[1](1)"),
                 "parse: line 1: expected true or false, found ')} out %0'"});
  check_refused({constant("i32[1](1.0)"),
                 "parse: line 1: '1.0' is not an integer, found ')} out %0'"});
  check_refused({constant("i32[1](2147483648)"),
                 "parse: line 1: 2147483648 does not fit i32, found ')} out %0'"});
  check_refused({constant("f32[-1]()"),
                 "parse: line 1: shape: dimensions must be >= 0, got [-1], "
                 "found '()} out %0'"});
}

TEST_CASE("a short text cannot claim gigabytes") {
  CHECK(parse(constant("bool[16777216](splat true)")).num_values() == 1);
  check_refused({constant("f32[16777217](splat 0)"),
                 "parse: line 1: a splat literal has at most 2^24 elements, "
                 "found ' 0)} out %0'"});
}

TEST_CASE("sub-graphs must close, and see no outer values") {
  check_refused({"in %0 = constant {value={in out out",
                 "parse: line 1: expected '}', found 'out'"});
  check_refused({"in %0:f32[] %1 = constant {value={in out %0}} out",
                 "parse: line 1: value %0 is not defined here, found '}} out'"});
}

TEST_CASE("endless nesting is refused before the stack is") {
  std::string text;
  for (int i = 0; i < 100000; ++i) text += "in %0 = constant {value={";
  try {
    parse(text);
    FAIL("the text was accepted");
  } catch (const UserError& e) {
    CHECK(std::string(e.what()).find("nested too deeply") != std::string::npos);
  }
}

TEST_CASE("labels of a sub-graph may repeat the outer ones") {
  const std::string text = "in %0:f32[] %1 = constant {value={in %0:i32[] out %0}} out";
  check_refused({text,
                 "parse: line 1: constant: attribute 'value' must be array, got "
                 "graph, found 'out'"},
                ErrorKind::type);
}

}  // namespace parse_test
