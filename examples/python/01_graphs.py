# SPDX-License-Identifier: Apache-2.0
"""Three models as one step each, and what the compiler finds in them: which weights reach which
hidden states, and how each parameter will be served."""
import sys

import braintrace_cpp as bt


class SingleLayerRNN(bt.nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = bt.nn.ValinaRNNCell(10, 32)
        self.out = bt.nn.Linear(32, 5)

    def update(self, x):
        return self.out(self.rnn(x))


class TwoLayerRNN(bt.nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn1 = bt.nn.GRUCell(10, 32)
        self.rnn2 = bt.nn.GRUCell(32, 32)
        self.out = bt.nn.Linear(32, 5)

    def update(self, x):
        return self.out(self.rnn2(self.rnn1(x)))


class ConvRNN(bt.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = bt.nn.Conv2d(1, 8, kernel_size=3, padding="SAME")
        self.rnn = bt.nn.ValinaRNNCell(8 * 28 * 28, 64)
        self.out = bt.nn.Linear(64, 10)

    def update(self, x):
        return self.out(self.rnn(self.conv(x).reshape(-1)))


def show(name, model, x):
    """Compiles the model and prints what was found. How many groups there are."""
    bt.nn.init_all_states(model)
    graph = bt.compile_etrace_graph(model, x)
    print(f"== {name}: output [{model(x).shape[0]}]")
    print(graph.report.verdict_table())
    return len(graph.hidden_groups)


groups = [show("single layer", SingleLayerRNN(), bt.zeros(10)),
          show("two layers", TwoLayerRNN(), bt.zeros(10)),
          show("convolution", ConvRNN(), bt.zeros((1, 28, 28)))]
sys.exit(groups != [1, 2, 1])
