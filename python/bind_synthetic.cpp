// SPDX-License-Identifier: Apache-2.0
// The predictor of DNI, how it is fitted, and learners as headers.
#include "convert.h"
#include "py_learner.h"

#include "braintrace/train/export_learner.h"
#include "braintrace/train/synthetic_training.h"

namespace braintrace::python {
namespace {

using namespace py::literals;

void def_predictor(py::module_& m) {
  using S = SyntheticGradient;
  py::class_<S>(m, "SyntheticGradient",
                "A linear predictor of future gradients, one per hidden group (DNI).\n\n"
                "group_shapes: index -> (*varshape, num_state).\n\n"
                ">>> s = bt.SyntheticGradient({0: (4, 1)})\n"
                ">>> s.estimate(0, bt.ones((4, 1))).tolist()\n"
                "[[0.0], [0.0], [0.0], [0.0]]")
      .def(py::init([](const std::map<std::int64_t, Size>& shapes, double scale,
                       std::uint64_t seed) {
             std::map<std::int64_t, Shape> given;
             for (const auto& [group, size] : shapes) given[group] = size.dims;
             return S(std::move(given), {scale, seed});
           }),
           "group_shapes"_a, "scale"_a = 0.0, "seed"_a = 0)
      .def("estimate", &S::estimate, "group"_a, "h"_a, "What it predicts for states h.")
      .def_property_readonly("group_shapes",
                             [](const S& s) {
                               py::dict out;
                               for (const auto& [group, shape] : s.group_shapes())
                                 out[py::int_(group)] = to_tuple(shape);
                               return out;
                             })
      .def(
          "parameters",
          [](const S& s, std::int64_t group) {
            const S::Parameters& p = s.parameters(group);
            return py::make_tuple(p.w, p.b);
          },
          "group"_a, "(W, b) of one group.")
      .def(
          "set_parameters",
          [](S& s, std::int64_t group, const Array& w, const Array& b) {
            s.set_parameters(group, {w, b});
          },
          "group"_a, "w"_a, "b"_a);
}

// `loss` gets the outputs of a window as the model returns them, time in front.
std::function<Value(const Values&)> window_loss(const PyLearner& l,
                                                const py::object& loss) {
  if (loss.is_none()) return {};
  return [&l, held = keep(loss)](const Values& outputs) {
    py::gil_scoped_acquire gil;
    return to_value((*held)(l.outputs(outputs)));
  };
}

std::vector<double> fit(PyLearner& l, const py::object& inputs, std::int64_t chunk_size,
                        const py::object& loss, const Optimizer& optimizer,
                        std::int64_t epochs, bool reset) {
  std::vector<Value> leaves;
  flatten(inputs, leaves);
  const std::vector<Array> arrays = arrays_of(leaves);
  const SyntheticTrainingOptions o{.chunk_size = chunk_size,
                                   .loss = window_loss(l, loss),
                                   .optimizer = optimizer.rule(),
                                   .epochs = epochs,
                                   .reset = reset};
  py::gil_scoped_release release;
  return train_synthetic_gradient(l.learner(), arrays, o);
}

ExportLanguage language_of(const std::string& name) {
  for (const ExportLanguage l : {ExportLanguage::cpp17, ExportLanguage::c99})
    if (name == to_string(l)) return l;
  throw UserError("export_learner: language must be " +
                  std::string(to_string(ExportLanguage::cpp17)) + " or " +
                  std::string(to_string(ExportLanguage::c99)) + ", got '" + name + "'");
}

// What is around the rule stays behind.
UpdateRule exported_rule(const Optimizer& o) {
  const OptimizerOptions& around = o.options();
  BT_REQUIRE_KIND(!around.clip_norm && !around.clip_value && !around.schedule,
                  ErrorKind::not_supported,
                  "export_learner: an optimiser with clip_norm, clip_value or schedule "
                  "cannot be exported, only its rule");
  return o.rule();
}

std::string header(PyLearner& l, const py::function& step_fn, const py::args& examples,
                   bool has_aux, LearnerExport options) {
  std::vector<Value> leaves;
  const Tree args = l.read(examples, leaves);
  Tree aux;
  return export_learner(l.learner(), l.traced(step_fn, args, has_aux, aux),
                        arrays_of(leaves), options);
}

}  // namespace

void init_synthetic(py::module_& m) {
  def_predictor(m);
  m.def("_train_synthetic_gradient", &fit);
  m.def("_export_learner", [](PyLearner& l, const py::function& step_fn, bool has_aux,
                              const std::string& name, std::vector<std::string> arguments,
                              std::vector<std::string> results, double learning_rate,
                              const Optimizer* optimizer, const std::string& language,
                              const py::args& examples) {
    return header(
        l, step_fn, examples, has_aux,
        {.name = name,
         .arguments = std::move(arguments),
         .results = std::move(results),
         .learning_rate = learning_rate,
         .optimizer = optimizer ? std::optional(exported_rule(*optimizer)) : std::nullopt,
         .language = language_of(language)});
  });
}

}  // namespace braintrace::python
