// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/learner_checkpoint.h"

#include <doctest/doctest.h>

#include "braintrace/nn/nn.h"

namespace learner_checkpoint_test {

using namespace braintrace;

TEST_CASE("a checkpoint of another optimiser is refused by name and changes nothing") {
  nn::GRUCell model(3, 4);
  Learner learner(model, D_RTRL{}, {zeros({3})});
  learner.step({ones({3})});
  Optimizer adam(Adam{});
  adam.update(model, {{"Wr/weight/bias", ones({4})}});
  const Checkpoint saved = parse_checkpoint(to_bytes(checkpoint_of(learner, adam, 1)));
  learner.step({ones({3})});
  const StateDict before = state_dict(model);
  for (const UpdateRule& rule :
       std::vector<UpdateRule>{SGD{}, AdamW{}, RMSprop{}, Lion{}}) {
    Optimizer other(rule);
    CHECK_THROWS_WITH_AS(restore(learner, other, saved),
                         doctest::Contains("the state was written by Adam(m,v), this"),
                         UserError);
    CHECK(state_dict(model) == before);
    CHECK(other.num_updates() == 0);
  }
  Optimizer slower(Adam{.lr = 1e-5});
  restore(learner, slower, saved);
  CHECK(slower.num_updates() == 1);
}

}  // namespace learner_checkpoint_test
