// SPDX-License-Identifier: Apache-2.0
#pragma once
// The table of layers: name, how to build one from Python arguments, documentation.
#include <memory>
#include <span>
#include <typeinfo>

#include "reader.h"

namespace braintrace::python {

struct LayerSpec {
  const char* name;
  const char* base;  // Python class: Module, Neuron, Synapse
  std::shared_ptr<Module> (*make)(Reader&);
  const std::type_info& type;
  const char* doc;
  // One call for the documentation: constructor, shape in, shape out; null: none.
  const char* call = nullptr;
  const char* in = nullptr;
  const char* out = nullptr;
};

std::span<const LayerSpec> linear_layers();
std::span<const LayerSpec> spatial_layers();
std::span<const LayerSpec> norm_layers();
std::span<const LayerSpec> activation_layers();
std::span<const LayerSpec> shaped_activation_layers();  // with an argument
std::span<const LayerSpec> recurrent_layers();
std::span<const LayerSpec> neuron_layers();
std::span<const LayerSpec> synapse_layers();

// Rows (name, base, documentation) in the order build_layer counts.
py::list layer_table();
std::shared_ptr<Module> build_layer(std::size_t index, const py::args& args,
                                    const py::kwargs& kwargs);

// The Python class of a layer's dynamic type; Module for an unlisted one.
py::object class_of_layer(const Module& m);

}  // namespace braintrace::python
