// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "braintrace/base/error.h"
#include "braintrace/ops/op_list.h"
#include "braintrace/testing/check_op.h"

namespace braintrace {
namespace {

using testing::check_op;
using testing::uniform;

void check_equation(std::string_view equation, Shape x, Shape w) {
  check_op({.op = "einsum",
            .build = [=](const Values& in) -> Values {
              return {einsum(equation, in[0], in[1])};
            },
            .inputs = {uniform(x, -1, 1), uniform(w, -1, 1, 2)}});
}

TEST_CASE("einsum") {
  check_op({.op = "einsum",
            .build = [](const Values& in) -> Values {
              return {einsum("bi,io->bo", in[0], in[1])};
            },
            .inputs = {uniform({2, 3}, -1, 1), uniform({3, 4}, -1, 1, 2)},
            .expect = {{{array({1, 2}, {1, 2}, DType::f64),
                         array({2, 2}, {3, 4, 5, 6}, DType::f64)},
                        {array({1, 2}, {13, 16}, DType::f64)}}}});
}

TEST_CASE("einsum per head") { check_equation("bhd,hde->bhe", {2, 3, 2}, {3, 2, 4}); }

TEST_CASE("einsum with a shared axis and permuted letters") {
  check_equation("bsi,oi->bos", {2, 3, 2}, {4, 2});
}

TEST_CASE("einsum with a letter only x has") {
  check_equation("bki,io->bo", {2, 3, 2}, {2, 4});
}

TEST_CASE("einsum scaling each feature") { check_equation("bf,f->bf", {2, 3}, {3}); }

TEST_CASE("einsum may have spaces") {
  CHECK(einsum("b i, i o -> b o", ones({1, 2}), ones({2, 1})).array().item() == 2);
}

TEST_CASE("einsum is anchored unless letters are shared") {
  auto anchored = [](const char* equation, Shape x, Shape w, Shape y) {
    const std::vector<Type> in = {{DType::f32, x}, {DType::f32, w}};
    const std::vector<Type> out = {{DType::f32, y}};
    const Attrs attrs = {{"equation", std::string(equation)}};
    return einsum_op.etp->anchored({in, out, attrs});
  };
  CHECK(anchored("bi,io->bo", {1, 2}, {2, 3}, {1, 3}));
  CHECK_FALSE(anchored("bsi,io->bso", {1, 5, 2}, {2, 3}, {1, 5, 3}));
}

TEST_CASE("einsum refuses equations outside its grammar") {
  auto refused = [](std::string_view equation, Shape x, Shape w, const char* rule) {
    CHECK_THROWS_WITH_AS(einsum(equation, zeros(x), zeros(w)), doctest::Contains(rule),
                         UserError);
  };
  refused("bi,io", {1, 1}, {1, 1}, "needs the form x,w->y");
  refused("bi->bi", {1, 1}, {1, 1}, "needs the form x,w->y");
  refused("bi,io,oj->bj", {1, 1}, {1, 1}, "needs exactly two operands");
  refused("bI,Io->bo", {1, 1}, {1, 1}, "letters must be a to z");
  refused("...i,io->...o", {1, 1}, {1, 1}, "letters must be a to z");
  refused("bii,io->bo", {1, 1, 1}, {1, 1}, "letter 'i' repeats in 'bii'");
  refused("ib,io->bo", {1, 1}, {1, 1}, "x and y must start with the batch letter");
  refused(",io->", {}, {1, 1}, "x and y must start with the batch letter");
  refused("bi,bio->bo", {1, 1}, {1, 1, 1}, "the weight may not have the batch letter");
  refused("bi,io->bz", {1, 1}, {1, 1}, "letter 'z' of the output is in neither operand");
  refused("bi,ioz->bo", {1, 1}, {1, 1, 1},
          "letter 'z' of the weight is in neither x nor the output");
  refused("bi,io->bo", {1, 1, 1}, {1, 1}, "does not fit the ranks of [1,1,1] and [1,1]");
  refused("bi,io->bo", {1, 2}, {3, 1}, "letter 'i' is 2 in x [1,2] but 3");
}

}  // namespace
}  // namespace braintrace
