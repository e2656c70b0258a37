// SPDX-License-Identifier: Apache-2.0
// The cells a model reads and writes in one step.
#include "convert.h"
#include "reader.h"
#include <fmt/format.h>

#include "braintrace/model/long_term_state.h"
#include "braintrace/nn/initializers.h"

namespace braintrace::python {
namespace {

py::object value_of(State& s) {
  if (s.num_leaves() == 1 && s.spec(0).key.empty()) return py::cast(s.read(0));
  py::dict leaves;
  for (std::size_t i = 0; i < s.num_leaves(); ++i)
    leaves[py::str(s.spec(i).key)] = py::cast(s.read(i));
  return leaves;
}

void set_value(State& s, const py::object& v) {
  const FloatsAs width(s.has_value() ? s.stored(0).dtype() : DType::f32);
  if (!py::isinstance<py::dict>(v)) return s.write(0, to_value(v));
  for (const auto& [key, leaf] : py::reinterpret_borrow<py::dict>(v))
    s.write(s.leaf_index(key.cast<std::string>()), to_value(leaf));
}

// A state may be declared by its size, or by the value it starts with.
struct Start {
  Shape size;
  Initializer init;
  std::optional<DType> dtype = {};  // known when a value was given
};

bool is_size(const py::object& o) {
  if (py::hasattr(o, "shape")) return false;
  if (PyIndex_Check(o.ptr())) return true;
  if (!py::isinstance<py::tuple>(o) && !py::isinstance<py::list>(o)) return false;
  for (py::handle d : o)
    if (!PyIndex_Check(d.ptr())) return false;
  return true;
}

Start start_of(const py::object& size_or_value, const py::object& init,
               double otherwise) {
  if (!init.is_none()) return {to_shape(size_or_value), to_initializer(init)};
  if (is_size(size_or_value)) return {to_shape(size_or_value), constant_init(otherwise)};
  const Array a = to_array(size_or_value);
  return {a.shape(), nn::init::given(a), a.dtype()};
}

template <class S>
std::shared_ptr<S> started(std::shared_ptr<S> s, const std::optional<DType>& dtype) {
  if (dtype) s->initialize(rng_key(0), {.dtype = is_float(*dtype) ? *dtype : DType::f32});
  return s;
}

std::shared_ptr<ParamState> make_param(const py::object& value, const py::object& init) {
  if (!py::isinstance<py::dict>(value)) {
    Start s = start_of(value, init, 0);
    return started(std::make_shared<ParamState>(s.size, s.init), s.dtype);
  }
  std::vector<LeafSpec> leaves;
  std::optional<DType> dtype;
  for (const auto& [key, leaf] : py::reinterpret_borrow<py::dict>(value)) {
    const Array a = to_array(leaf);
    dtype = a.dtype();
    leaves.push_back({key.cast<std::string>(), a.shape(), nn::init::given(a)});
  }
  return started(std::make_shared<ParamState>(std::move(leaves)), dtype);
}

std::shared_ptr<HiddenState> make_hidden(const py::object& size, const py::object& init) {
  Start s = start_of(size, init, 0);
  return started(std::make_shared<HiddenState>(s.size, s.init), s.dtype);
}

// By size and number of states, or by the first value, whose last axis is that of states.
std::shared_ptr<HiddenGroupState> make_group(const py::object& size,
                                             const std::optional<std::int64_t>& num_state,
                                             const py::object& init) {
  if (num_state)
    return std::make_shared<HiddenGroupState>(to_shape(size), *num_state,
                                              to_initializer(init));
  BT_REQUIRE_KIND(!is_size(size), ErrorKind::type,
                  "HiddenGroupState: a size needs num_state, the number of states");
  const Start s = start_of(size, py::none(), 0);
  BT_REQUIRE(!s.size.empty(),
             "HiddenGroupState: the first value needs a last axis, one entry per state, "
             "got a scalar");
  return started(std::make_shared<HiddenGroupState>(
                     Shape(s.size.begin(), s.size.end() - 1), s.size.back(), s.init),
                 s.dtype);
}

std::shared_ptr<HiddenTreeState> make_tree(const Size& size,
                                           std::vector<std::string> names,
                                           const py::object& init) {
  return std::make_shared<HiddenTreeState>(size, std::move(names), to_initializer(init));
}

std::shared_ptr<ShortTermState> make_short_term(const py::object& size,
                                                const py::object& init, bool batched,
                                                const std::optional<DType>& dtype) {
  Start s = start_of(size, init, 0);
  ShortTermOptions o{.batched = batched, .dtype = dtype};
  if (s.dtype && !is_float(*s.dtype)) o.dtype = s.dtype;
  return started(std::make_shared<ShortTermState>(s.size, s.init, o), s.dtype);
}

std::shared_ptr<LongTermState> make_long_term(const py::object& size,
                                              const py::object& init,
                                              const std::optional<DType>& dtype) {
  Start s = start_of(size, init, 0);
  const std::optional<DType> own = s.dtype && !is_float(*s.dtype) ? s.dtype : dtype;
  return started(std::make_shared<LongTermState>(s.size, s.init, own), s.dtype);
}

std::string state_repr(const State& s) {
  std::string leaves;
  for (std::size_t i = 0; i < s.num_leaves(); ++i) {
    const std::string& key = s.spec(i).key;
    leaves += (i == 0 ? "" : ", ") + (key.empty() ? "" : key + ": ") +
              (s.has_value() ? to_string(type_of(s.stored(i)))
                             : to_string(s.spec(i).shape) + " not initialised");
  }
  return fmt::format("{}({})", to_string(s.kind()), leaves);
}

void set_members(HiddenTreeState& s, const std::map<std::string, py::object>& members) {
  std::vector<std::pair<std::string, Value>> values;
  for (const auto& [name, v] : members) values.emplace_back(name, to_value(v));
  s.set_members(values);
}

using namespace py::literals;

void def_state(py::module_& m) {
  py::class_<State, std::shared_ptr<State>>(
      m, "State",
      "Base of all states.\n\n"
      ">>> isinstance(bt.HiddenState(4), bt.State)\n"
      "True")
      .def_property("value", &value_of, &set_value,
                    "The array, or a dict of arrays; symbolic while a step is traced.")
      .def_property_readonly(
          "kind", [](const State& s) { return std::string(to_string(s.kind())); })
      .def_property_readonly("name", &State::name)
      .def_property_readonly(
          "size", [](const State& s) { return to_tuple(s.spec(0).shape); },
          "The declared shape, without batch, of the first array.")
      .def_property_readonly("has_value", &State::has_value)
      .def("__repr__", &state_repr);
  py::class_<ParamState, State, std::shared_ptr<ParamState>>(
      m, "ParamState",
      "Trainable: an array, a dict of arrays, or a shape with an initialiser.\n\n"
      ">>> bt.ParamState(bt.ones(2)).value.tolist()\n[1.0, 1.0]")
      .def(py::init(&make_param), "value"_a, "init"_a = py::none());
}

void def_hidden(py::module_& m) {
  py::class_<HiddenState, State, std::shared_ptr<HiddenState>>(
      m, "HiddenState",
      "Memory from step to step, declared by its size (without batch) or first value.\n\n"
      ">>> bt.HiddenState(4)\nHiddenState([4] not initialised)")
      .def(py::init(&make_hidden), "size"_a, "init"_a = py::none())
      .def_property_readonly("num_state", &HiddenState::num_state)
      .def_property_readonly("varshape",
                             [](const HiddenState& s) { return to_tuple(s.varshape()); });
  py::class_<HiddenGroupState, HiddenState, std::shared_ptr<HiddenGroupState>>(
      m, "HiddenGroupState",
      "Several states of one shape on the last axis.\n\n"
      ">>> bt.HiddenGroupState(4, 2).num_state\n2")
      .def(py::init(&make_group), "size"_a, "num_state"_a = py::none(), "init"_a = 0.0)
      .def("get_value", py::overload_cast<std::int64_t>(&HiddenGroupState::get), "i"_a)
      .def(
          "set_value",
          [](HiddenGroupState& s, const std::vector<Value>& v) { s.set_all(v); },
          "members"_a);
  py::class_<HiddenTreeState, HiddenGroupState, std::shared_ptr<HiddenTreeState>>(
      m, "HiddenTreeState",
      "The same with named members.\n\n>>> bt.HiddenTreeState(4, ['v', 'w']).names\n"
      "['v', 'w']")
      .def(py::init(&make_tree), "size"_a, "names"_a, "init"_a = 0.0)
      .def_property_readonly("names", &HiddenTreeState::names)
      .def(
          "get_value", [](HiddenTreeState& s, const std::string& n) { return s.get(n); },
          "name"_a)
      .def("set_value", &set_members, "members"_a);
}

}  // namespace

void init_state(py::module_& m) {
  def_state(m);
  def_hidden(m);
  py::class_<ShortTermState, State, std::shared_ptr<ShortTermState>>(
      m, "ShortTermState",
      "Lives from step to step but gets no trace.\n\n"
      ">>> bt.ShortTermState(3).kind\n'ShortTermState'")
      .def(py::init(&make_short_term), "size"_a, "init"_a = py::none(),
           "batched"_a = true, "dtype"_a = py::none());
  py::class_<LongTermState, ShortTermState, std::shared_ptr<LongTermState>>(
      m, "LongTermState",
      "Learned by the way, as running statistics are: keeps its value when sequences "
      "begin.\n\n"
      ">>> bt.LongTermState(3).kind\n'ShortTermState'")
      .def(py::init(&make_long_term), "size"_a, "init"_a = py::none(),
           "dtype"_a = py::none());
  py::class_<RngState, ShortTermState, std::shared_ptr<RngState>>(
      m, "RngState",
      "Keys for random ops of a step.\n\n>>> bt.RngState().kind\n"
      "'ShortTermState'")
      .def(py::init<>())
      .def("next", &RngState::next, "A fresh key; advances the state.");
}

}  // namespace braintrace::python
