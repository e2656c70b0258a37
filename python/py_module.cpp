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
  std::vector<std::shared_ptr<void>> kept = {};
};

// Beyond that the library's own walks could run out of stack.
constexpr std::size_t kMaxDepth = 500;

bool is_container(py::handle h) {
  return py::isinstance<py::list>(h) || py::isinstance<py::tuple>(h) ||
         py::isinstance<py::dict>(h);
}

}  // namespace

struct ModelWalk {
  // By object; null while the walk is below it.
  std::map<PyObject*, std::shared_ptr<Module>> met = {};
  Path path = {};
  PartPlaces places = {};
};

namespace {

std::shared_ptr<Module> container_of(py::handle h, ModelWalk& walk);
std::shared_ptr<Module> make_module(py::handle h, ModelWalk& walk);

// The module an object stands for, null when it holds none or leads back.
std::shared_ptr<Module> child_of(py::handle h, ModelWalk& walk) {
  if (!is_module(h) && !is_container(h)) return nullptr;
  const auto [it, is_new] = walk.met.try_emplace(h.ptr());
  if (is_new) it->second = is_module(h) ? make_module(h, walk) : container_of(h, walk);
  return it->second;
}

// Calls f(part) with the module or state that `part`, found under `key`, stands for.
template <class F>
void for_part(ModelWalk& walk, py::handle holder, const PathKey& key, py::handle name,
              py::handle part, F f) {
  walk.path.keys.push_back(key);
  BT_REQUIRE(walk.path.keys.size() <= kMaxDepth,
             fmt::format("model: parts lie deeper than {} levels, at {}...", kMaxDepth,
                         to_slashes(walk.path).substr(0, 60)));
  if (py::isinstance<State>(part)) {
    walk.places.add(walk.path, holder, name, part);
    f(*part.cast<State*>(), keep(py::reinterpret_borrow<py::object>(part)));
  } else if (const auto child = child_of(part, walk)) {
    walk.places.add(walk.path, holder, name, part);
    f(*child, child);
  }
  walk.path.keys.pop_back();
}

void add_entry(Container& c, const PathKey& key, State& s) {
  // Lists of states stand under names: positions are kept for modules.
  const auto* name = std::get_if<std::string>(&key);
  c.add(name ? *name : std::to_string(std::get<std::int64_t>(key)), s);
}

void add_entry(Container& c, const PathKey& key, Module& m) {
  if (const auto* name = std::get_if<std::string>(&key)) return c.add(*name, m);
  c.add_indexed(std::get<std::int64_t>(key), m);
}

std::shared_ptr<Module> container_of(py::handle h, ModelWalk& walk) {
  auto c = std::make_shared<Container>();
  const auto enter = [&](const PathKey& key, py::handle name, py::handle item) {
    for_part(walk, h, key, name, item, [&](auto& part, std::shared_ptr<void> owner) {
      add_entry(*c, key, part);
      c->kept.push_back(std::move(owner));
    });
  };
  if (py::isinstance<py::dict>(h)) {
    for (const auto& [key, item] : py::reinterpret_borrow<py::dict>(h)) {
      if (py::isinstance<py::str>(key)) enter(key.cast<std::string>(), key, item);
      if (py::isinstance<py::int_>(key)) enter(key.cast<std::int64_t>(), key, item);
    }
  } else {
    std::int64_t i = 0;
    for (py::handle item : h) enter(i, py::int_(i), item), ++i;
  }
  return c->members().empty() ? nullptr : c;
}

bool overrides(py::handle h, const char* method) {
  const py::object own = py::type::of(h).attr(method);
  const py::object base = py::type::of<ModuleRef>().attr(method);
  return !own.is(base);
}

bool takes_batch_size(const py::object& method) {
  const py::object inspect = py::module_::import("inspect");
  const py::object any_keyword = inspect.attr("Parameter").attr("VAR_KEYWORD");
  const py::dict named(inspect.attr("signature")(method).attr("parameters"));
  for (const auto& [name, parameter] : named)
    if (name.equal(py::str("batch_size")) ||
        py::object(parameter.attr("kind")).equal(any_keyword))
      return true;
  return false;
}

// States that a class makes in `init_state` instead of `__init__`: once, and without a
// batch, whose axis init_all_states adds to every state.
void make_states(py::handle h) {
  auto& ref = h.cast<ModuleRef&>();
  if (ref.has_made_states || !overrides(h, "init_state")) return;
  ref.has_made_states = true;  // init_state may look at the model
  try {
    const py::object method = h.attr("init_state");
    if (takes_batch_size(method))
      method(py::arg("batch_size") = py::none());
    else
      method();
  } catch (...) {
    ref.has_made_states = false;
    throw;
  }
}

std::shared_ptr<Module> make_module(py::handle h, ModelWalk& walk) {
  const auto& ref = h.cast<const ModuleRef&>();
  if (ref.layer && !overrides(h, "update")) return ref.layer;
  make_states(h);
  return std::make_shared<PyModule>(py::reinterpret_borrow<py::object>(h), ref.layer,
                                    walk);
}

bool same_states(const Module& a, const Module& b) {
  const auto same = [](const NamedState& x, const NamedState& y) {
    return x.state == y.state && x.path == y.path;
  };
  const std::vector<NamedState> in_a = collect_states(a), in_b = collect_states(b);
  return std::equal(in_a.begin(), in_a.end(), in_b.begin(), in_b.end(), same);
}

}  // namespace

void PartPlaces::add(const Path& path, py::handle holder, py::handle key,
                     py::handle part) {
  if (!PyDict_Check(holder.ptr()) && !PyList_Check(holder.ptr())) return;
  if (!kept_) kept_ = keep(py::list());
  for (const py::handle h : {holder, key, part}) kept_->attr("append")(h);
  places_.push_back({path, holder.ptr(), key.ptr(), part.ptr()});
}

std::optional<Path> PartPlaces::first_changed() const {
  for (const Place& p : places_) {
    const bool is_dict = PyDict_Check(p.holder) != 0;
    const auto i = is_dict ? 0 : PyLong_AsSsize_t(p.key);
    const bool there = is_dict || i < PyList_GET_SIZE(p.holder);
    const PyObject* now = !there    ? nullptr
                          : is_dict ? PyDict_GetItem(p.holder, p.key)
                                    : PyList_GET_ITEM(p.holder, i);
    if (now != p.part) return p.path;
  }
  return std::nullopt;
}

PyModule::PyModule(py::object self, const std::shared_ptr<Module>& layer, ModelWalk& walk)
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
    for_part(walk, attributes, name, key, value,
             [&](auto& part, std::shared_ptr<void> owner) {
               add(name, part);
               kept_.push_back(std::move(owner));
             });
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
  ModelWalk walk;
  const std::shared_ptr<Module> m = child_of(h, walk);
  if (auto* p = dynamic_cast<PyModule*>(m.get())) p->set_places(std::move(walk.places));
  return m;
}

void require_same_states(Module& m, const char* who) {
  auto* p = dynamic_cast<PyModule*>(&m);
  if (p == nullptr) return;
  const std::optional<Path> changed = p->places().first_changed();
  if (!changed) return;
  const std::shared_ptr<Module> now = module_of(p->self());
  if (!same_states(m, *now))
    throw UserError(ErrorKind::runtime,
                    fmt::format("{}: the model has another '{}' than when it was "
                                "compiled; compile it again",
                                who, to_slashes(*changed)));
  p->set_places(static_cast<PyModule&>(*now).places());  // the same under other objects
}

std::optional<DType> dtype_of_parameters(const Module& m) {
  for (const NamedState& n : collect_states(m))
    if (n.state->kind() == StateKind::param && n.state->has_value())
      return n.state->stored(0).dtype();
  return std::nullopt;
}

std::optional<DType> dtype_before_parameters(const Module& m) {
  return dtype_of_parameters(m) ? std::nullopt : std::optional(default_float());
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
