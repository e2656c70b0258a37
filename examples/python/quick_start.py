# SPDX-License-Identifier: Apache-2.0
"""The quick start of braintrace; only the import lines differ from the original's."""
from braintrace_cpp import brainstate  # import brainstate
import braintrace_cpp.numpy as jnp  # import jax.numpy as jnp
import braintrace_cpp as braintrace  # import braintrace


class GRUNet(brainstate.nn.Module):
    def __init__(self, n_in, n_rec, n_out):
        super().__init__()
        self.rnn = braintrace.nn.GRUCell(n_in, n_rec)
        self.out = braintrace.nn.Linear(n_rec, n_out)

    def update(self, x):
        return self.out(self.rnn(x))


model = GRUNet(3, 8, 1)

# One call: initialise states, compile the eligibility-trace graph, return a ready learner.
learner = braintrace.compile(model, braintrace.D_RTRL, jnp.zeros((1, 3)), batch_size=1)


def step_loss(x, y):
    return jnp.mean((learner(x) - y) ** 2)


xs = brainstate.random.randn(100, 1, 3)  # (time, batch, features)
ys = brainstate.random.randn(100, 1, 1)

# Drives the sequence and accumulates online gradients: O(1) memory in T.
grads, losses = learner.etrace_grad(xs, ys, step_fn=step_loss, return_value=True)

# Beyond the original: a few steps of gradient descent.
first = float(losses.mean())
optimizer = braintrace.Adam(lr=1e-2)
for _ in range(20):
    brainstate.nn.init_all_states(model, batch_size=1)  # hidden states to zero, weights stay
    learner.reset_state()
    grads, losses = learner.etrace_grad(xs, ys, step_fn=step_loss, return_value=True)
    optimizer.update(model, grads)
print(f"loss {first:.3f} -> {float(losses.mean()):.3f}")
assert float(losses.mean()) < 0.95 * first
