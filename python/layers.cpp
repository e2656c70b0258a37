// SPDX-License-Identifier: Apache-2.0
#include "layers.h"

#include <map>
#include <typeindex>

#include <fmt/format.h>

namespace braintrace::python {
namespace {

const std::vector<const LayerSpec*>& all_layers() {
  static const auto* table = [] {
    auto* t = new std::vector<const LayerSpec*>();
    for (const auto& part : {linear_layers(), spatial_layers(), norm_layers(),
                             activation_layers(), shaped_activation_layers(),
                             recurrent_layers(), neuron_layers(), synapse_layers()})
      for (const LayerSpec& s : part) t->push_back(&s);
    return t;
  }();
  return *table;
}

std::string signature_of(const LayerSpec& s) {
  Reader describe(s.name);
  try {
    s.make(describe);
  } catch (const Reader::Described& d) {
    return s.name + d.signature;
  }
  throw InternalError(fmt::format("layer {} does not end its arguments", s.name));
}

std::string documentation(const LayerSpec& s) {
  std::string text = fmt::format("{}\n\n{}", signature_of(s), s.doc);
  if (s.call != nullptr)
    text += fmt::format(
        "\n\n>>> layer = bt.nn.init_all_states(bt.nn.{})\n"
        ">>> layer(bt.zeros({}{})).shape\n{}",
        s.call, s.in, std::string_view(s.name) == "Embedding" ? ", 'i32'" : "", s.out);
  return text;
}

}  // namespace

py::list layer_table() {
  py::list rows;
  for (const LayerSpec* s : all_layers())
    rows.append(py::make_tuple(s->name, s->base, documentation(*s)));
  return rows;
}

std::shared_ptr<Module> build_layer(std::size_t index, const py::args& args,
                                    const py::kwargs& kwargs) {
  const LayerSpec& s = *all_layers().at(index);
  Reader r(s.name, args, kwargs);
  return s.make(r);
}

py::object class_of_layer(const Module& m) {
  static const auto* names = [] {
    auto* t = new std::map<std::type_index, const char*>();
    for (const LayerSpec* s : all_layers()) t->emplace(s->type, s->name);
    return t;
  }();
  const py::object nn = py::module_::import("braintrace_cpp.nn");
  const auto it = names->find(typeid(m));
  return nn.attr(it == names->end() ? "Module" : it->second);
}

}  // namespace braintrace::python
