# SPDX-License-Identifier: Apache-2.0
"""The tutorial "Graph Compilation & Visualization" of braintrace, line by line.

Only the import lines differ; the originals stand beside them.
"""
import braintrace_cpp.jax as jax  # import jax
import braintrace_cpp.numpy as jnp  # import jax.numpy as jnp
from braintrace_cpp import brainstate  # import brainstate
import braintrace_cpp as braintrace  # import braintrace


# ---- Single-Layer RNN ----
class SingleLayerRNN(brainstate.nn.Module):
    def __init__(self, n_in, n_rec, n_out):
        super().__init__()
        self.rnn = braintrace.nn.ValinaRNNCell(n_in, n_rec)
        self.out = braintrace.nn.Linear(n_rec, n_out)

    def update(self, x):
        return self.out(self.rnn(x))


model = SingleLayerRNN(10, 32, 5)
brainstate.nn.init_all_states(model)

# Compile the graph and visualize
algo = braintrace.D_RTRL(model)
algo.compile_graph(jnp.zeros(10))
algo.show_graph()

# ---- Understanding ETraceGraph ----
graph = algo.graph

print("=== Hidden Groups ===")
for g in graph.hidden_groups:
    print(f"  Group {g.index}: {g.num_state} state(s), shape {g.varshape}")
    print(f"    Paths: {g.hidden_paths}")

print("\n=== Weight-Primitive-Hidden Relations ===")
for i, r in enumerate(graph.hidden_param_op_relations):
    print(f"  Relation {i}:")
    print(f"    Weight path: {r.weight_path}")
    print(f"    Primitive: {r.primitive}")
    print(f"    Hidden groups: {[g.index for g in r.hidden_groups]}")

print(f"\n=== Perturbation ===")
print(f"  Has perturbation: {graph.hidden_perturb is not None}")


# ---- Two-Layer RNN ----
class TwoLayerRNN(brainstate.nn.Module):
    def __init__(self, n_in, n_rec, n_out):
        super().__init__()
        self.rnn1 = braintrace.nn.GRUCell(n_in, n_rec)
        self.rnn2 = braintrace.nn.GRUCell(n_rec, n_rec)
        self.out = braintrace.nn.Linear(n_rec, n_out)

    def update(self, x):
        h1 = self.rnn1(x)
        h2 = self.rnn2(h1)
        return self.out(h2)


model2 = TwoLayerRNN(10, 32, 5)
brainstate.nn.init_all_states(model2)

algo2 = braintrace.D_RTRL(model2)
algo2.compile_graph(jnp.zeros(10))
algo2.show_graph()

# Inspect the two-layer graph programmatically
graph2 = algo2.graph

print(f"Number of hidden groups: {len(graph2.hidden_groups)}")
print(f"Number of weight-hidden relations: {len(graph2.hidden_param_op_relations)}")

print("\nHidden groups:")
for g in graph2.hidden_groups:
    print(f"  Group {g.index}: {g.hidden_paths}")

print("\nRelations:")
for i, r in enumerate(graph2.hidden_param_op_relations):
    groups = [g.index for g in r.hidden_groups]
    print(f"  Weight {i}: {r.weight_path} -> hidden group(s) {groups}")


# ---- Convolutional Network ----
class ConvRNN(brainstate.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = braintrace.nn.Conv2d(1, 8, kernel_size=3, padding='SAME')
        self.rnn = braintrace.nn.ValinaRNNCell(8 * 28 * 28, 64)
        self.out = braintrace.nn.Linear(64, 10)

    def update(self, x):
        # x: (1, 28, 28) -- single-channel 28x28 image
        features = self.conv(x).reshape(-1)
        return self.out(self.rnn(features))


model3 = ConvRNN()
brainstate.nn.init_all_states(model3)

algo3 = braintrace.D_RTRL(model3)
algo3.compile_graph(jnp.zeros((1, 28, 28)))
algo3.show_graph()

# ---- Using compile_etrace_graph Directly ----
model_direct = SingleLayerRNN(10, 32, 5)
brainstate.nn.init_all_states(model_direct)

graph_direct = braintrace.compile_etrace_graph(model_direct, jnp.zeros(10))

print(f"Number of hidden groups: {len(graph_direct.hidden_groups)}")
print(f"Number of relations: {len(graph_direct.hidden_param_op_relations)}")
print(f"Has perturbation: {graph_direct.hidden_perturb is not None}")

print("\nGraph fields:")
for key in graph_direct.dict().keys():
    print(f"  {key}")
