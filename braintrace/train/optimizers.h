// SPDX-License-Identifier: Apache-2.0
#pragma once
// Rules that turn gradients by path into new parameters by path.
//
//   Optimizer opt(Adam{.lr = 1e-3}, {.clip_norm = 1.0});
//   opt.update(model, grads);
//
// Order within one update: clip by global norm, clip by value, coupled weight decay
// (g + wd w), the rule, w - lr * result.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "braintrace/model/module.h"
#include "braintrace/train/schedules.h"

namespace braintrace {

class ThreadPool;

// m <- g + momentum m;  step m, or g + momentum m when nesterov. No dampening.
struct SGD {
  double lr = 1e-3;
  double momentum = 0;
  bool nesterov = false;
  double weight_decay = 0;  // coupled

  friend bool operator==(const SGD&, const SGD&) = default;
};

// m <- b1 m + (1 - b1) g;  v <- b2 v + (1 - b2) g^2;
// step (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + eps), t = 1, 2, ...
// amsgrad: the largest corrected v so far.
struct Adam {
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0;  // coupled: added to g before the moments
  bool amsgrad = false;

  friend bool operator==(const Adam&, const Adam&) = default;
};

// As Adam, with weight_decay w added to the step.
struct AdamW {
  double lr = 1e-3;
  double beta1 = 0.9, beta2 = 0.999;
  double eps = 1e-8;
  double weight_decay = 0.01;

  friend bool operator==(const AdamW&, const AdamW&) = default;
};

// v <- alpha v + (1 - alpha) g^2;  step g / sqrt(v + eps); eps stands under the root.
// centered: v - (mean g)^2 under it. momentum: trace of the steps.
struct RMSprop {
  double lr = 1e-2;
  double alpha = 0.99;
  double eps = 1e-8;
  double momentum = 0;
  bool centered = false;
  double weight_decay = 0;  // coupled

  friend bool operator==(const RMSprop&, const RMSprop&) = default;
};

// step sign(b1 m + (1 - b1) g) + weight_decay w;  m <- b2 m + (1 - b2) g
struct Lion {
  double lr = 1e-4;
  double beta1 = 0.9, beta2 = 0.99;
  double weight_decay = 0;

  friend bool operator==(const Lion&, const Lion&) = default;
};

using UpdateRule = std::variant<SGD, Adam, AdamW, RMSprop, Lion>;

struct OptimizerOptions {
  std::optional<double> clip_norm = {};
  std::optional<double> clip_value = {};
  Schedule schedule = {};        // replaces the rule's lr
  bool manual_schedule = false;  // count by advance_schedule() instead of by updates
};

class Optimizer {
 public:
  explicit Optimizer(UpdateRule rule, OptimizerOptions options = {});

  // The new values of the parameters that have a gradient. All paths, shapes and types
  // are checked before anything changes. Paths without a gradient keep their moments.
  StateDict update(const StateDict& params, const StateDict& grads);
  void update(Module& model, const StateDict& grads);
  // For a step after every step: looks the model's parameters up once; update(grads) then
  // moves them where they are and allocates nothing from the second time on. The model
  // must outlive this use. UserError without attach(). With the threads of a learner
  // (Learner::threads) large parameters are moved by all of them: the same numbers.
  void attach(Module& model, std::shared_ptr<ThreadPool> pool = {});
  void update(const StateDict& grads);

  const UpdateRule& rule() const { return rule_; }
  const OptimizerOptions& options() const { return options_; }
  double learning_rate() const;  // of the next update
  void advance_schedule() { ++schedule_count_; }
  std::int64_t num_updates() const { return num_updates_; }

  // The rule with its moments, counts and moments as named arrays: "rule/Adam(m,v)",
  // "updates", "schedule", "m/<path>", ...
  StateDict state_dict() const;
  // All or nothing. UserError, naming both, for the state of another rule; another
  // learning rate is no other rule.
  void load_state_dict(const StateDict& state);

 private:
  friend class UpdateInStep;
  UpdateRule rule_;
  OptimizerOptions options_;
  std::int64_t num_updates_ = 0;
  std::int64_t schedule_count_ = 0;
  std::vector<std::string> kept_;             // names of the rule's moments
  std::map<std::string, StateDict> moments_;  // by name, then by path
  struct Attached {
    State* state;
    std::size_t leaf;
  };
  std::map<std::string, Attached> attached_;  // by path

  std::shared_ptr<ThreadPool> pool_;  // for attached_, or null

  void move(const std::string& path, Array& w, const Array& gradient, double lr,
            ThreadPool* pool = nullptr);
};

}  // namespace braintrace
