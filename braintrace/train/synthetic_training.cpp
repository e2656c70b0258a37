// SPDX-License-Identifier: Apache-2.0
#include "braintrace/train/synthetic_training.h"

#include <fmt/format.h>

#include "braintrace/algo/vjp_executor.h"
#include "braintrace/ir/builder.h"
#include "braintrace/ir/evaluate.h"
#include "braintrace/transforms/vjp.h"

namespace braintrace {
namespace {

void check(const Learner& learner, const std::vector<Array>& inputs,
           const SyntheticTrainingOptions& o) {
  constexpr const char* kWho = "train_synthetic_gradient";
  BT_REQUIRE_KIND(learner.rule().synthesizer.has_value(), ErrorKind::runtime,
                  fmt::format("{}: {} has no synthesizer; call set_synthesizer() first",
                              kWho, learner.algorithm().name));
  BT_REQUIRE(!learner.options().vmap,
             fmt::format("{}: windows are not available under vmap", kWho));
  BT_REQUIRE(o.chunk_size >= 1,
             fmt::format("{}: chunk_size must be >= 1, got {}", kWho, o.chunk_size));
  BT_REQUIRE(o.epochs >= 1,
             fmt::format("{}: epochs must be >= 1, got {}", kWho, o.epochs));
  BT_REQUIRE(!inputs.empty() && !inputs[0].shape().empty(),
             fmt::format("{}: a sequence with a leading time axis is needed", kWho));
  const std::int64_t length = inputs[0].shape()[0];
  for (const Array& a : inputs)
    BT_REQUIRE(!a.shape().empty() && a.shape()[0] == length,
               fmt::format("{}: sequences must have one length, got {} and {}", kWho,
                           length, a.shape().empty() ? 0 : a.shape()[0]));
  BT_REQUIRE(length > 0 && length % o.chunk_size == 0,
             fmt::format("{}: chunk_size {} does not divide the length {}", kWho,
                         o.chunk_size, length));
}

// (h, target, w, b) -> (error, d error / d w, d error / d b)
Graph regression(const Shape& shape, const SyntheticGradient::Parameters& p) {
  const auto builder = Builder::create();
  const Value h = builder->input({DType::f32, shape}),
              target = builder->input({DType::f32, shape}),
              w = builder->input({DType::f32, p.w.shape()}),
              b = builder->input({DType::f32, p.b.shape()});
  const Value error = mean(square(synthetic_gradient(h, w, b) - target));
  return value_and_grad(builder->finish(std::vector{error}), {false, false, true, true});
}

class Trainer {
 public:
  Trainer(Learner& learner, const std::vector<Array>& inputs,
          const SyntheticTrainingOptions& options)
      : learner_(learner),
        inputs_(inputs),
        options_(options),
        synthesizer_(*learner.rule().synthesizer),
        optimizer_(options.optimizer) {
    VjpExecutorOptions e{.vjp_method = VjpMethod::multi_step};
    e.graph = learner.options().graph;
    e.graph.batched = learner.is_batched();
    executor_ = std::make_unique<ETraceVjpGraphExecutor>(learner.model(), e);
    for (const HiddenGroup& g : learner.graph().hidden_groups)
      regressions_.push_back(regression(synthesizer_.group_shapes().at(g.index),
                                        synthesizer_.parameters(g.index)));
  }

  std::vector<double> run() {
    std::vector<double> history;
    for (std::int64_t e = 0; e < options_.epochs; ++e) history.push_back(epoch());
    learner_.set_synthesizer(synthesizer_);
    return history;
  }

 private:
  using Groups = std::vector<Array>;  // (*V, S) each

  double epoch() {
    if (options_.reset) {
      InitOptions init{.batch_size = learner_.options().batch_size};
      init_all_states(learner_.model(), init);
      learner_.reset_state();
    }
    const std::int64_t length = inputs_[0].shape()[0];
    double total = 0;
    for (std::int64_t t = 0; t < length; t += options_.chunk_size) {
      const Groups entry = states();
      total += fit(entry, sent_to_entry(t));
      advance(t);
    }
    const Groups end = states();
    Groups nothing;
    for (const Array& h : end) nothing.push_back(zeros(h.shape(), h.dtype()));
    total += fit(end, nothing);
    return total / static_cast<double>(length / options_.chunk_size + 1);
  }

  Groups states() const {
    Groups out;
    for (const HiddenGroup& g : learner_.graph().hidden_groups) {
      std::vector<Array> members;
      for (const HiddenState* s : g.hidden_states()) members.push_back(s->stored());
      out.push_back(g.concat_hidden(members));
    }
    return out;
  }

  // Adjoints at entry of this window's loss and of the prediction at its end.
  Groups sent_to_entry(std::int64_t t) {
    std::vector<StepArgument> args;
    for (const Array& a : inputs_)
      args.emplace_back(MultiStepData{{rows(a, t, options_.chunk_size)}});
    const StepSolution s = executor_->solve_h2w_h2h_l2h_jacobian(args);
    StepCotangents ct;
    for (const Array& g : loss_gradient(s.out)) ct.out.emplace_back(g);
    for (const HiddenGroup& g : learner_.graph().hidden_groups) {
      std::vector<Array> exits;
      for (const Path& p : g.hidden_paths()) exits.push_back(s.hidden_vals.at(p));
      const Value predicted =
          synthesizer_.estimate(g.index, Value(g.concat_hidden(exits)));
      const std::vector<Array> parts = g.split_hidden(predicted.array());
      for (std::size_t i = 0; i < parts.size(); ++i)
        ct.hidden[g.hidden_paths()[i]] = parts[i];
    }
    const StepAdjoints a = s.residual(ct);
    Groups out;
    for (const HiddenGroup& g : learner_.graph().hidden_groups) {
      std::vector<Array> parts;
      for (const Path& p : g.hidden_paths()) parts.push_back(a.hidden.at(p));
      out.push_back(g.concat_hidden(parts));
    }
    return out;
  }

  std::vector<Array> loss_gradient(const std::vector<Array>& outputs) const {
    const auto builder = Builder::create();
    Values y;
    for (const Array& a : outputs) y.push_back(builder->input(type_of(a)));
    Value loss = scalar(0, y[0].dtype());
    if (options_.loss)
      loss = options_.loss(y);
    else
      for (const Value& v : y) loss = loss + sum(square(v));
    BT_REQUIRE(loss.rank() == 0 && is_float(loss.dtype()),
               fmt::format("train_synthetic_gradient: the loss must be a float scalar, "
                           "got {}",
                           to_string(loss.type())));
    return eval_graph(grad(builder->finish(std::vector{loss})), outputs);
  }

  void advance(std::int64_t t) {
    Values window;
    for (const Array& a : inputs_) window.emplace_back(rows(a, t, options_.chunk_size));
    learner_(MultiStepData{window});
  }

  // One regression step; the error before it, summed over groups.
  double fit(const Groups& entry, const Groups& target) {
    double error = 0;
    StateDict parameters, grads;
    const auto& groups = learner_.graph().hidden_groups;
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const SyntheticGradient::Parameters& p = synthesizer_.parameters(groups[i].index);
      const std::vector<Array> r = eval_graph(
          regressions_[i], std::vector{entry[i].astype(DType::f32),
                                       target[i].astype(DType::f32), p.w, p.b});
      error += r[0].item();
      const std::string name = std::to_string(groups[i].index);
      parameters[name + "/w"] = p.w;
      parameters[name + "/b"] = p.b;
      grads[name + "/w"] = r[1];
      grads[name + "/b"] = r[2];
    }
    const StateDict next = optimizer_.update(parameters, grads);
    for (const HiddenGroup& g : groups) {
      const std::string name = std::to_string(g.index);
      synthesizer_.set_parameters(g.index, {next.at(name + "/w"), next.at(name + "/b")});
    }
    return error;
  }

  Learner& learner_;
  const std::vector<Array>& inputs_;
  const SyntheticTrainingOptions& options_;
  SyntheticGradient synthesizer_;
  Optimizer optimizer_;
  std::unique_ptr<ETraceVjpGraphExecutor> executor_;
  std::vector<Graph> regressions_;  // per group
};

}  // namespace

std::vector<double> train_synthetic_gradient(Learner& learner,
                                             const std::vector<Array>& inputs,
                                             const SyntheticTrainingOptions& options) {
  check(learner, inputs, options);
  return Trainer(learner, inputs, options).run();
}

}  // namespace braintrace
