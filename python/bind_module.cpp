// SPDX-License-Identifier: Apache-2.0
// Modules: the Python class behind models and layers, and what is done to whole models.
#include "convert.h"
#include "layers.h"
#include "py_module.h"
#include <fmt/format.h>

#include "braintrace/model/full_state_dict.h"
#include "braintrace/model/step_model.h"
#include "braintrace/nn/neuron.h"
#include "braintrace/nn/synapse.h"

namespace braintrace::python {
namespace {

// The step of a layer, called from Python.
py::object update_layer(const py::object& self, const py::args& args) {
  auto& ref = self.cast<ModuleRef&>();
  if (!ref.layer)
    throw UserError(ErrorKind::not_implemented,
                    "Module.update: define update(self, ...) in your class");
  if (args.empty()) {
    if (auto* n = dynamic_cast<nn::Neuron*>(ref.layer.get()))
      return py::cast(n->update());
    if (auto* s = dynamic_cast<nn::Synapse*>(ref.layer.get()))
      return py::cast(s->update());
  }
  std::vector<Value> inputs;
  for (py::handle a : args) inputs.push_back(to_value(a));
  const std::vector<Value> out = ref.layer->update_all(inputs);
  if (out.size() == 1) return py::cast(out.front());
  return py::tuple(py::cast(out));
}

// Members of a layer appear as attributes.
py::object find_attribute(const py::object& self, const std::string& name) {
  const auto& ref = self.cast<ModuleRef&>();
  if (ref.layer) {
    const auto& members = ref.layer->members();
    if (const auto it = members.find(PathKey(name)); it != members.end()) {
      if (auto* const* child = std::get_if<Module*>(&it->second))
        return wrap_module(**child, self);
      return wrap_state(*std::get<State*>(it->second), self);
    }
  }
  throw py::attribute_error(fmt::format(
      "'{}' object has no attribute '{}'",
      py::str(py::type::of(self).attr("__name__")).cast<std::string>(), name));
}

const Module* identity(const py::object& o) {
  const auto& ref = o.cast<const ModuleRef&>();
  return ref.layer ? ref.layer.get() : nullptr;
}

bool is_training(const ModuleRef& ref) {
  return ref.layer ? ref.layer->training() : ref.training;
}

// Layers keep the mode themselves; objects written in Python keep it in their ModuleRef.
void mark(const Module& m, bool training) {
  if (const auto* p = dynamic_cast<const PyModule*>(&m))
    p->self().cast<ModuleRef&>().training = training;
  for (const auto& [key, member] : m.members())
    if (auto* const* child = std::get_if<Module*>(&member)) mark(**child, training);
}

py::object set_training(const py::object& o, bool mode) {
  const auto m = module_of(o);
  m->set_training(mode);
  if (auto& layer = o.cast<ModuleRef&>().layer) layer->set_training(mode);
  mark(*m, mode);
  return o;
}

nn::Neuron& neuron_of(const py::object& o) {
  auto* n = dynamic_cast<nn::Neuron*>(o.cast<ModuleRef&>().layer.get());
  if (n == nullptr) throw UserError(ErrorKind::type, "expected a neuron");
  return *n;
}

nn::Synapse& synapse_of(const py::object& o) {
  auto* s = dynamic_cast<nn::Synapse*>(o.cast<ModuleRef&>().layer.get());
  if (s == nullptr) throw UserError(ErrorKind::type, "expected a synapse");
  return *s;
}

py::dict states(const py::object& model, const py::object& kind) {
  if (!kind.is_none() && !PyType_Check(kind.ptr()) && !PyTuple_Check(kind.ptr()))
    throw UserError(ErrorKind::type,
                    fmt::format("states: kind must be a class such as ParamState, or a "
                                "tuple of classes, got {}",
                                py::repr(kind).cast<std::string>()));
  py::dict out;
  for (const NamedState& n : collect_states(*module_of(model))) {
    const py::object state = wrap_state(*n.state, model);
    if (kind.is_none() || py::isinstance(state, kind)) out[py::cast(n.path)] = state;
  }
  return out;
}

std::string class_name(py::handle o) {
  return py::type::of(o).attr("__name__").cast<std::string>();
}

// Net(rnn=GRUCell, out=Linear)
std::string module_repr(const py::object& self) {
  std::vector<std::string> parts;
  const std::shared_ptr<Module> module = module_of(self);
  for (const auto& [key, member] : module->members()) {
    std::string kind;
    if (auto* const* state = std::get_if<State*>(&member))
      kind = to_string((*state)->kind());
    else if (const auto* p = dynamic_cast<PyModule*>(std::get<Module*>(member)))
      kind = class_name(p->self());
    else
      kind =
          class_of_layer(*std::get<Module*>(member)).attr("__name__").cast<std::string>();
    parts.push_back(fmt::format("{}={}", to_slashes(Path{{key}}), kind));
  }
  return fmt::format("{}({})", class_name(self), fmt::join(parts, ", "));
}

void def_class(py::module_& m) {
  py::class_<ModuleRef> c(m, "Module", py::dynamic_attr(),
                          R"(A model: attributes that are modules or states, and one step.

>>> class Net(bt.nn.Module):
...     def __init__(self):
...         super().__init__()
...         self.rnn = bt.nn.GRUCell(3, 4)
...     def update(self, x):
...         return self.rnn(x)
>>> net = bt.nn.init_all_states(Net())
>>> net(bt.ones(3)).shape
(4,))");
  c.def(py::init<>());
  py::object update = py::cpp_function(&update_layer, py::name("update"),
                                       py::is_method(c), py::doc("One step."));
  c.attr("update") = update;
  c.def(
       "init_state", [](const py::object&, const py::args&, const py::kwargs&) {},
       "Makes states that __init__ does not make; called once, before a model is used. "
       "batch_size is None: init_all_states adds the axis of a batch to every state.")
      .def("__getattr__", &find_attribute)
      .def("__call__", [](const py::object& self, const py::args& a,
                          const py::kwargs& k) { return self.attr("update")(*a, **k); })
      .def_property_readonly("training", &is_training)
      .def("train", &set_training, py::arg("mode") = true)
      .def("eval", [](const py::object& o) { return set_training(o, false); })
      .def("states", &states, py::arg("kind") = py::none(),
           "Every state by path, in the order of the paths; with a kind, such as "
           "ParamState, those only.")
      .def(
          "state_dict", [](const py::object& o) { return state_dict(*module_of(o)); },
          "Values by slash path.")
      .def(
          "load_state_dict",
          [](const py::object& o, const py::dict& given, bool strict) {
            const FloatsAs width(DType::f64);  // states take what fits their type
            const auto values = given.cast<StateDict>();
            (strict ? load_full_state_dict : load_state_dict)(*module_of(o), values);
          },
          py::arg("values"), py::arg("strict") = true,
          "Stores values by slash path, all or none. UserError when one is missing; with "
          "strict=False states without a value keep theirs.")
      .def("__eq__",
           [](const py::object& a, const py::object& b) {
             return a.is(b) || (is_module(b) && identity(a) != nullptr &&
                                identity(a) == identity(b));
           })
      .def("__repr__", &module_repr)
      .def("__hash__", [](const py::object& o) {
        const void* p = identity(o);
        return reinterpret_cast<std::size_t>(p != nullptr ? p : o.ptr());
      });
}

}  // namespace

void init_module(py::module_& m) {
  def_class(m);
  m.def("_build_layer", [](const py::object& self, std::size_t index, const py::args& a,
                           const py::kwargs& k) {
    self.cast<ModuleRef&>().layer = build_layer(index, a, k);
  });
  m.def("_layer_table", &layer_table);
  m.def("_neuron_spike", [](const py::object& o) { return neuron_of(o).get_spike(); });
  m.def("_neuron_current",
        [](const py::object& o, Arg v) { neuron_of(o).add_current(v.value); });
  m.def("_neuron_delta",
        [](const py::object& o, Arg v) { neuron_of(o).add_delta(v.value); });
  m.def("_neuron_size",
        [](const py::object& o) { return to_tuple(neuron_of(o).size()); });
  m.def("_synapse_delta",
        [](const py::object& o, Arg v) { synapse_of(o).add_delta(v.value); });
  m.def("_synapse_value", [](const py::object& o) { return synapse_of(o).value(); });
  m.def(
      "init_all_states",
      [](const py::object& model, const std::optional<std::int64_t>& batch_size,
         const std::optional<std::uint64_t>& seed, const std::optional<DType>& dtype) {
        const auto m = module_of(model);
        init_all_states(*m,
                        {batch_size, seed, dtype ? dtype : dtype_before_parameters(*m)});
        return model;
      },
      py::arg("model"), py::arg("batch_size") = py::none(), py::arg("seed") = py::none(),
      py::arg("dtype") = py::none(),
      "Gives states their first values; parameters only when they have none, or a seed "
      "is "
      "given.\n\n>>> cell = bt.nn.init_all_states(bt.nn.GRUCell(2, 3), batch_size=5)\n"
      ">>> cell.h.value.shape\n(5, 3)");
}

}  // namespace braintrace::python
