// SPDX-License-Identifier: Apache-2.0
#include "py_module.h"

#include "convert.h"
#include "layers.h"
#include "value_object.h"
#include <fmt/format.h>

namespace braintrace::python {
namespace {

// Modules and states of a list, tuple or dict, under their positions or keys.
struct Container : Module {
  using Module::add;
  using Module::add_indexed;
};

using Kept = std::vector<std::shared_ptr<void>>;

bool is_container(py::handle h) {
  return py::isinstance<py::list>(h) || py::isinstance<py::tuple>(h) ||
         py::isinstance<py::dict>(h);
}

std::shared_ptr<Module> container_of(py::handle h, Kept& kept);

// The module an attribute stands for, null when it holds none.
std::shared_ptr<Module> child_of(py::handle h, Kept& kept) {
  if (is_module(h)) return module_of(h);
  return is_container(h) ? container_of(h, kept) : nullptr;
}

void add_entry(Container& c, const PathKey& key, py::handle item, Kept& kept) {
  if (py::isinstance<State>(item)) {
    // Lists of states stand under names: positions are kept for modules.
    const auto* name = std::get_if<std::string>(&key);
    c.add(name ? *name : std::to_string(std::get<std::int64_t>(key)),
          *item.cast<State*>());
    kept.push_back(keep(py::reinterpret_borrow<py::object>(item)));
  } else if (const auto child = child_of(item, kept)) {
    if (const auto* name = std::get_if<std::string>(&key)) {
      c.add(*name, *child);
    } else {
      c.add_indexed(std::get<std::int64_t>(key), *child);
    }
    kept.push_back(child);
  }
}

std::shared_ptr<Module> container_of(py::handle h, Kept& kept) {
  auto c = std::make_shared<Container>();
  if (py::isinstance<py::dict>(h)) {
    for (const auto& [key, item] : py::reinterpret_borrow<py::dict>(h)) {
      if (py::isinstance<py::str>(key))
        add_entry(*c, key.cast<std::string>(), item, kept);
      if (py::isinstance<py::int_>(key))
        add_entry(*c, key.cast<std::int64_t>(), item, kept);
    }
  } else {
    std::int64_t i = 0;
    for (py::handle item : h) add_entry(*c, i++, item, kept);
  }
  return c->members().empty() ? nullptr : c;
}

bool overrides_update(py::handle h) {
  const py::object own = py::type::of(h).attr("update");
  const py::object base = py::type::of<ModuleRef>().attr("update");
  return !own.is(base);
}

}  // namespace

PyModule::PyModule(py::object self, const std::shared_ptr<Module>& layer)
    : self_(keep(self)) {
  const py::dict attributes = self.attr("__dict__");
  const auto is_own = [&](const std::string& name) { return attributes.contains(name); };
  if (layer) {
    kept_.push_back(layer);
    for (const auto& [key, member] : layer->members()) {
      const auto& name = std::get<std::string>(key);
      if (is_own(name)) continue;
      std::visit([&](auto* m) { add(name, *m); }, member);
    }
  }
  for (const auto& [key, value] : attributes) {
    const auto name = key.cast<std::string>();
    if (py::isinstance<State>(value)) {
      add(name, *value.cast<State*>());
      kept_.push_back(keep(py::reinterpret_borrow<py::object>(value)));
    } else if (const auto child = child_of(value, kept_)) {
      add(name, *child);
      kept_.push_back(child);
    }
  }
}

Value PyModule::update(Value x) {
  py::gil_scoped_acquire gil;  // evaluations run without it
  return to_value(self_->attr("update")(std::move(x)));
}

std::vector<Value> PyModule::update_all(const std::vector<Value>& inputs) {
  py::gil_scoped_acquire gil;
  py::tuple args(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) args[i] = value_object(inputs[i]);
  if (args_ && args_->num_leaves() == inputs.size()) args = unflatten(*args_, inputs);
  const py::object returned = self_->attr("update")(*args);
  if (returned.is_none())
    throw UserError(
        ErrorKind::type,
        fmt::format("{}.update returned None; it must return the output of the step",
                    py::type::of(*self_).attr("__name__").cast<std::string>()));
  std::vector<Value> outputs;
  outputs_ = flatten(returned, outputs);
  return outputs;
}

bool is_module(py::handle h) { return py::isinstance<ModuleRef>(h); }

std::shared_ptr<Module> module_of(py::handle h) {
  if (!is_module(h)) {
    const auto name = [](py::handle type) {
      return type.attr("__name__").cast<std::string>();
    };
    const bool is_class = PyType_Check(h.ptr()) != 0;
    throw UserError(
        ErrorKind::type,
        is_class ? fmt::format("expected a model, got the class {0}; make one: "
                               "{0}(...)",
                               name(h))
                 : fmt::format("a model must be a braintrace_cpp.nn.Module, got {}",
                               py::repr(h).cast<std::string>()));
  }
  const auto& ref = h.cast<const ModuleRef&>();
  if (ref.layer && !overrides_update(h)) return ref.layer;
  return std::make_shared<PyModule>(py::reinterpret_borrow<py::object>(h), ref.layer);
}

py::object wrap_module(Module& m, const py::object& owner) {
  const py::object type = class_of_layer(m);
  py::object out = type.attr("__new__")(type);
  py::type::of<ModuleRef>().attr("__init__")(out);
  out.cast<ModuleRef&>().layer = std::shared_ptr<Module>(keep(owner), &m);
  return out;
}

py::object wrap_state(State& s, const py::object& owner) {
  return py::cast(&s, py::return_value_policy::reference_internal, owner);
}

std::vector<Value> bind_inputs(Module& m, const py::args& args) {
  std::vector<Value> leaves;
  Tree t = flatten(args, leaves);
  if (auto* p = dynamic_cast<PyModule*>(&m)) p->set_inputs(std::move(t));
  return leaves;
}

std::vector<Array> arrays_of(const std::vector<Value>& values) {
  std::vector<Array> out;
  for (const Value& v : values) out.push_back(v.array());
  return out;
}

py::object restore_outputs(const Module& m, const std::vector<Value>& outputs) {
  const auto* p = dynamic_cast<const PyModule*>(&m);
  if (p != nullptr && p->outputs().num_leaves() == outputs.size())
    return unflatten(p->outputs(), outputs);
  if (outputs.size() == 1) return value_object(outputs.front());
  return py::tuple(py::cast(outputs));
}

}  // namespace braintrace::python
