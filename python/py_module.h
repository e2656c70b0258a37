// SPDX-License-Identifier: Apache-2.0
#pragma once
// Modules of the library and modules written in Python behind one Python class.
#include <memory>
#include <optional>

#include "bindings.h"
#include "tree.h"

#include "braintrace/model/module.h"

namespace braintrace::python {

// What a Python `Module` object holds: a layer of the library, or nothing when the class
// is written in Python; both, where Python code extends a layer.
struct ModuleRef {
  std::shared_ptr<Module> layer = {};
  bool training = true;
  bool has_made_states = false;  // by init_state
};

struct ModelWalk;
// Where a model written in Python holds its parts: attributes, dict entries and places in
// lists, and what stood there.
class PartPlaces {
 public:
  void add(const Path& path, py::handle holder, py::handle key, py::handle part);
  std::optional<Path> first_changed() const;  // needs the GIL

 private:
  struct Place {
    Path path;
    PyObject *holder, *key, *part;
  };
  std::vector<Place> places_;
  std::shared_ptr<py::object> kept_;  // a list of all objects above
};

// A model written in Python as it is now: `update` is the object's method, members are
// the modules and states among its attributes; one that leads back to a module above it
// is none. Keeps all of them alive.
class PyModule : public Module {
 public:
  PyModule(py::object self, const std::shared_ptr<Module>& layer, ModelWalk& walk);

  Value update(Value x) override;
  std::vector<Value> update_all(const std::vector<Value>& inputs) override;

  // How the inputs of update_all are put together for `update`.
  void set_inputs(Tree args) { args_ = std::move(args); }
  const Tree& outputs() const { return outputs_; }  // of the last update_all
  py::object self() const { return *self_; }

  // Of the whole model, where it starts with this module.
  void set_places(PartPlaces places) { places_ = std::move(places); }
  const PartPlaces& places() const { return places_; }

 private:
  std::shared_ptr<py::object> self_;
  std::vector<std::shared_ptr<void>> kept_;
  std::optional<Tree> args_;
  Tree outputs_;
  PartPlaces places_;
};

bool is_module(py::handle h);
// The module behind a Python object; it keeps what it is made of alive. TypeError when
// the object is none.
std::shared_ptr<Module> module_of(py::handle h);
// UserError when the Python object behind `m` has other states than when module_of made
// `m`: what was compiled then is no longer the model. Needs the GIL.
void require_same_states(Module& m, const char* who);

// Of the first parameter that has a value.
std::optional<DType> dtype_of_parameters(const Module& m);
// The default float type, set by set_default_dtype, for a model whose parameters have no
// values yet; nullopt where they say the type.
std::optional<DType> dtype_before_parameters(const Module& m);

// Python objects for what `owner` keeps alive.
py::object wrap_module(Module& m, const py::object& owner);
py::object wrap_state(State& s, const py::object& owner);

// Example inputs as `update` takes them: leaves, structure remembered by the module.
std::vector<Value> bind_inputs(Module& m, const py::args& args);
std::vector<Array> arrays_of(const std::vector<Value>& values);
// Outputs of the model as its `update` returned them.
py::object restore_outputs(const Module& m, const std::vector<Value>& outputs);

// A result that keeps the model it refers to alive.
template <class T>
std::shared_ptr<T> with_model(std::shared_ptr<Module> model, T result) {
  auto both = std::make_shared<std::pair<std::shared_ptr<Module>, T>>(std::move(model),
                                                                      std::move(result));
  return {both, &both->second};
}

}  // namespace braintrace::python
