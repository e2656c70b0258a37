// SPDX-License-Identifier: Apache-2.0
// Files of named arrays, checkpoints, and the memory a rule will take.
#include "records.h"
#include <fmt/format.h>

#include "braintrace/algo/memory_plan.h"
#include "braintrace/io/atomic_file.h"
#include "braintrace/io/checkpoint.h"

namespace braintrace::python {
namespace {

using namespace py::literals;
using Group = Checkpoint::Group;

void def_checkpoint(py::module_& m) {
  py::class_<Checkpoint>(
      m, "Checkpoint",
      "Everything a run needs to go on: four groups of named arrays, a "
      "step and two JSON texts.\n\n"
      ">>> bt.Checkpoint(weights={'w': bt.ones(2)}, step=3).step\n3")
      .def(py::init([](const Group& weights, const Group& states, const Group& traces,
                       const Group& optimizer, std::int64_t step,
                       const std::string& model, const std::string& config) {
             return Checkpoint{weights, states, traces, optimizer,
                               step,    {},     model,  config};
           }),
           py::kw_only(), "weights"_a = Group{}, "states"_a = Group{},
           "traces"_a = Group{}, "optimizer"_a = Group{}, "step"_a = 0,
           "model"_a = "null", "config"_a = "null")
      .def_readonly("weights", &Checkpoint::weights)
      .def_readonly("states", &Checkpoint::states)
      .def_readonly("traces", &Checkpoint::traces)
      .def_readonly("optimizer", &Checkpoint::optimizer)
      .def_readonly("step", &Checkpoint::step)
      .def_readonly("model", &Checkpoint::model)
      .def_readonly("config", &Checkpoint::config)
      .def(
          "replace",
          [](const Checkpoint& c, const std::optional<std::string>& model,
             const std::optional<std::string>& config) {
            Checkpoint out = c;
            if (model) out.model = *model;
            if (config) out.config = *config;
            return out;
          },
          py::kw_only(), "model"_a = py::none(), "config"_a = py::none(),
          "A copy with other JSON texts.")
      .def(
          "save",
          [](const Checkpoint& c, const FileName& path) {
            save_checkpoint(path.bytes, c);
          },
          "path"_a, "Written beside the file and renamed: old or new, never half of it.");
  m.def(
      "_write_file",
      [](const FileName& path, const std::string& text) {
        write_file_atomically(path.bytes, text);
      },
      "path"_a, "text"_a);
  m.def(
      "load_checkpoint", [](const FileName& path) { return load_checkpoint(path.bytes); },
      "path"_a,
      "A stored checkpoint; UserError unless every byte is as it was written.\n\n"
      ">>> import os, tempfile\n"
      ">>> file = os.path.join(tempfile.mkdtemp(), 'run.safetensors')\n"
      ">>> bt.Checkpoint(weights={'w': bt.ones(2)}, step=3).save(file)\n"
      ">>> bt.load_checkpoint(file).step\n3");
}

void def_memory_plan(py::module_& m) {
  using Item = MemoryItem;
  auto item =
      py::class_<Item>(m, "MemoryItem",
                       "One array a learning rule stores.\n\n"
                       ">>> gru = bt.nn.init_all_states(bt.nn.GRUCell(3, 4), seed=1)\n"
                       ">>> graph = bt.compile_etrace_graph(gru, bt.zeros(3))\n"
                       ">>> bt.memory_plan(graph, 'd_rtrl').items[0].kind\n'bwg'")
          .def_readonly("kind", &MemoryItem::kind)
          .def_readonly("owner", &MemoryItem::owner)
          .def_readonly("key", &MemoryItem::key)
          .def_readonly("relation", &MemoryItem::relation)
          .def_readonly("group", &MemoryItem::group)
          .def_property_readonly("shape",
                                 [](const MemoryItem& i) { return to_tuple(i.shape); })
          .def_readonly("dtype", &MemoryItem::dtype)
          .def_readonly("bytes", &MemoryItem::bytes)
          .def("__repr__", [](const MemoryItem& i) {
            return fmt::format("MemoryItem({}, {}, {})", i.kind, i.owner,
                               bytes_text(i.bytes));
          });
  def_record(item, &Item::kind, &Item::owner, &Item::key, &Item::relation, &Item::group,
             &Item::shape, &Item::dtype, &Item::bytes);
  auto plan = py::class_<MemoryPlan>(
                  m, "MemoryPlan",
                  "What a learning rule will store; made by memory_plan.\n\n"
                  ">>> gru = bt.nn.init_all_states(bt.nn.GRUCell(3, 4), seed=1)\n"
                  ">>> graph = bt.compile_etrace_graph(gru, bt.zeros(3))\n"
                  ">>> bt.memory_plan(graph, 'd_rtrl').algorithm\n'D_RTRL'")
                  .def_readonly("algorithm", &MemoryPlan::algorithm)
                  .def_readonly("items", &MemoryPlan::items)
                  .def_property_readonly("total_bytes", &MemoryPlan::total_bytes)
                  .def("__repr__", [](const MemoryPlan& p) {
                    return fmt::format("MemoryPlan({}, {} arrays, {})", p.algorithm,
                                       p.items.size(), bytes_text(p.total_bytes()));
                  });
  def_record(plan, &MemoryPlan::algorithm, &MemoryPlan::items);
  m.def(
      "memory_plan",
      [](const ETraceGraph& graph, const py::object& algorithm, std::int64_t window) {
        const Algorithm a = py::isinstance<py::str>(algorithm)
                                ? py::type::of<Algorithm>()(algorithm).cast<Algorithm>()
                                : algorithm.cast<Algorithm>();
        return memory_plan(graph, a, {.window = window});
      },
      "graph"_a, "algorithm"_a, "window"_a = 0,
      "Every array a rule carries from step to step, before anything runs.\n\n"
      ">>> graph = bt.compile_etrace_graph(bt.nn.init_all_states(bt.nn.GRUCell(3, 4)),"
      " bt.zeros(3))\n>>> bt.memory_plan(graph, 'd_rtrl').total_bytes > 0\nTrue");
}

void def_choice(py::module_& m) {
  using Choice = AlgorithmChoice;
  auto choice =
      py::class_<Choice>(
          m, "AlgorithmChoice",
          "The rule that fits a budget; made by choose_algorithm.\n\n"
          ">>> gru = bt.nn.init_all_states(bt.nn.GRUCell(3, 4), seed=1)\n"
          ">>> graph = bt.compile_etrace_graph(gru, bt.zeros(3))\n"
          ">>> bt.choose_algorithm(graph, 1000000)\nAlgorithmChoice(D_RTRL, 768 B)")
          .def_readonly("algorithm", &AlgorithmChoice::algorithm)
          .def_readonly("plan", &AlgorithmChoice::plan)
          .def_readonly("considered", &AlgorithmChoice::considered)
          .def("__repr__", [](const AlgorithmChoice& c) {
            return fmt::format("AlgorithmChoice({}, {})", c.algorithm.name,
                               bytes_text(c.plan.total_bytes()));
          });
  def_record(choice, &Choice::algorithm, &Choice::plan, &Choice::considered);
  m.def(
      "choose_algorithm",
      [](const ETraceGraph& graph, std::int64_t budget_bytes, double decay) {
        return choose_algorithm(graph, budget_bytes, {.decay_or_rank = decay});
      },
      "graph"_a, "budget_bytes"_a, "decay_or_rank"_a = 0.9,
      "The first of D_RTRL, Hybrid and pp_prop whose traces fit into the budget.\n\n"
      ">>> graph = bt.compile_etrace_graph(bt.nn.init_all_states(bt.nn.GRUCell(3, 4)),"
      " bt.zeros(3))\n>>> bt.choose_algorithm(graph, "
      "bt.parse_bytes('1MB')).algorithm.name"
      "\n'D_RTRL'");
  m.def(
      "parse_bytes", [](const std::string& text) { return parse_bytes(text); }, "text"_a,
      "'64MB' as a number.\n\n>>> bt.parse_bytes('2 KiB')\n2048");
}

}  // namespace

void init_io(py::module_& m) {
  def_checkpoint(m);
  def_memory_plan(m);
  def_choice(m);
}

}  // namespace braintrace::python
