# SPDX-License-Identifier: Apache-2.0
"""What the tests share."""
import braintrace_cpp as bt
import pytest


class Net(bt.nn.Module):
    """A recurrent cell and a readout, written in Python."""

    def __init__(self, n_in=3, n_rec=4, n_out=2, cell=None):
        super().__init__()
        self.rnn = cell or bt.nn.GRUCell(n_in, n_rec)
        self.out = bt.nn.Linear(n_rec, n_out)

    def update(self, x):
        return self.out(self.rnn(x))


@pytest.fixture
def net():
    return bt.nn.init_all_states(Net(), seed=1)


@pytest.fixture
def net_class():
    return Net
