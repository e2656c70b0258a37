# SPDX-License-Identifier: Apache-2.0
"""Objects go through pickle and copy and do the same afterwards, also in another process."""
import copy
import pickle
import subprocess
import sys

import braintrace_cpp as bt
import numpy as np
import pytest


def through(item):
    return pickle.loads(pickle.dumps(item))


def halves(n):
    """A schedule written in Python."""
    return 0.5 ** n


# ---- optimisers and schedules ----

RULES = [bt.SGD(0.1, momentum=0.9, nesterov=True), bt.Adam(lr=0.01, amsgrad=True, clip_norm=1.0),
         bt.AdamW(weight_decay=0.2, clip_value=0.3), bt.RMSprop(centered=True, momentum=0.5),
         bt.Lion(lr=0.02), bt.Adam(schedule=bt.schedule.cosine(0.1, 4), manual_schedule=True),
         bt.SGD(schedule=halves)]


def after_updates(optimizer, count, params):
    """`count` updates with a gradient that changes."""
    for i in range(count):
        grads = {"w": np.float32([1.0, -2.0 * (i + 1)])}
        params = optimizer.update(params, grads)
    return params


@pytest.mark.parametrize("optimizer", RULES, ids=repr)
def test_an_optimiser_goes_on_where_it_was(optimizer):
    fresh = through(optimizer)  # none of RULES has made an update yet
    assert (repr(fresh), fresh.num_updates) == (repr(optimizer), 0)
    start = {"w": bt.Value([0.5, 0.25])}
    whole = after_updates(through(optimizer), 5, start)
    first = through(optimizer)
    half = after_updates(first, 3, start)
    second = through(first)
    assert second.num_updates == 3
    for i in range(3, 5):
        grads = {"w": np.float32([1.0, -2.0 * (i + 1)])}
        half = second.update(half, grads)
    np.testing.assert_array_equal(half["w"], whole["w"])


def test_the_optimiser_of_a_run_pickles():
    net = bt.nn.Sequential(bt.nn.GRUCell(1, 4), bt.nn.Linear(4, 1))
    rate = bt.schedule.step(0.1, 1, 0.5)
    run = bt.TrainingRun(bt.tasks.integrator(), net, "d_rtrl", bt.Adam(schedule=rate))
    run.train(2)
    other = through(run.optimizer)
    assert (other.num_updates, other.learning_rate) == (2, 0.025)
    assert set(other.state_dict()) == set(run.optimizer.state_dict())


def test_an_attached_model_is_not_taken_along():
    model, optimizer = bt.nn.init_all_states(bt.nn.Linear(1, 1)), bt.SGD(lr=0.5)
    optimizer.attach(model)
    with pytest.raises(bt.UserError, match="attach"):
        through(optimizer).update({"weight/bias": bt.ones(1)})


@pytest.mark.parametrize("rate", [
    bt.schedule.constant(0.1), bt.schedule.step(1.0, 3, 0.5),
    bt.schedule.multistep(1.0, [2, 4], 0.5), bt.schedule.exponential(1.0, 5, 0.9),
    bt.schedule.cosine(1.0, 8, 0.1), bt.schedule.polynomial(1.0, 8, 2.0, 0.1),
    bt.schedule.warmup(3, bt.schedule.cosine(1.0, 8)), bt.schedule.warmup(3, halves)], ids=repr)
def test_schedules(rate):
    for other in (through(rate), copy.deepcopy(rate)):
        assert [other(n) for n in range(12)] == [rate(n) for n in range(12)]


def test_a_schedule_without_a_name_is_refused_by_pickle_itself():
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(bt.SGD(schedule=lambda n: 0.1))


# ---- tasks ----

@pytest.mark.parametrize("task", [
    bt.tasks.copying(delay=3, seed=5), bt.tasks.integrator(7, seed=2), bt.tasks.digits("pixels"),
    bt.tasks.text(text="abc abd abe " * 9, steps=6)], ids=lambda t: t.name)
def test_a_task_gives_the_same_samples(task):
    for other in (through(task), copy.copy(task)):
        a, b = task.batch(3, first=2, test=True), other.batch(3, first=2, test=True)
        np.testing.assert_array_equal(a.inputs, b.inputs)
        np.testing.assert_array_equal(a.targets, b.targets)
    again = through(task.batch(2))
    assert (again.inputs.shape, again.mask) == (task.batch(2).inputs.shape, task.mask)


# ---- what layers are given ----

@pytest.mark.parametrize("start", [
    bt.init.orthogonal(2.0), bt.init.normal(1.0, 0.1), bt.init.truncated_normal(), bt.init.zero(),
    bt.init.constant(0.5), bt.init.uniform(-1.0, 1.0), bt.init.identity(3.0),
    bt.init.given([[1.0, 2.0], [3.0, 4.0]]), bt.init.kaiming_normal(scale=3.0, plain=True),
    bt.init.lecun_uniform()], ids=repr)
def test_initialisers(start):
    key = bt.random_key(3)
    np.testing.assert_array_equal(through(start)(key, (2, 2)), start(key, (2, 2)))
    assert repr(through(start)) == repr(start)


@pytest.mark.parametrize("name", bt.nn.surrogate_names())
def test_surrogates(name):
    spike = bt.nn.Surrogate(name)
    assert through(spike) == spike


def test_a_surrogate_keeps_every_digit():
    spike = bt.nn.Surrogate("Sigmoid", alpha=0.1 + 0.2)
    assert through(spike) == spike != bt.nn.Surrogate("Sigmoid", alpha=0.3)


def test_synapse_outputs():
    for output in (bt.nn.CUBA(2.0), bt.nn.COBA(-80.0, 0.5), bt.nn.MgBlock(cc_Mg=0.7)):
        assert repr(through(output)) == repr(output)


# ---- values that hold numbers ----

def test_other_values():
    structure = bt.coo_structure(3, 4, [2, 0, 1], [3, 1, 0])
    assert (through(structure).rows, through(structure).cols) == ([2, 0, 1], [3, 1, 0])
    assert (through(structure).in_size, through(structure).out_size) == (3, 4)
    leaky = bt.GradExpon(decay=0.5)
    leaky.update({"w": [1.0]})
    assert through(leaky).update({"w": [1.0]})["w"].tolist() == [1.5]
    predictor = bt.SyntheticGradient({0: (2, 1)}, scale=0.1, seed=3)
    np.testing.assert_array_equal(through(predictor).estimate(0, bt.ones((2, 1))),
                                  predictor.estimate(0, bt.ones((2, 1))))
    stored = bt.Checkpoint(weights={"w": bt.ones(2)}, optimizer={"m": bt.zeros(1)}, step=3,
                           config='{"a": 1}')
    other = through(stored)
    assert (other.step, other.config, list(other.weights)) == (3, '{"a": 1}', ["w"])
    assert other.weights["w"].tolist() == [1.0, 1.0] and list(other.optimizer) == ["m"]


def test_programs():
    cell = bt.nn.init_all_states(bt.nn.GRUCell(3, 4))
    program = bt.trace_step(cell, bt.zeros(3)).program
    assert through(program) == program


# ---- what is reported ----

def a_run():
    net = bt.nn.Sequential(bt.nn.Linear(4, 6), bt.nn.LIF(6), bt.nn.Linear(6, 2))
    run = bt.TrainingRun(bt.tasks.delayed_match(channels=4), net, "d_rtrl", bt.Adam(), batch=2)
    run.train(updates=1, evaluate_every=1, samples=2)
    return run


def reports():
    run = a_run()
    graph = run.learner.graph
    certificate, plan = run.certificate(), bt.memory_plan(graph, "d_rtrl")
    return [certificate, certificate.rows[0], certificate.states[0], plan, plan.items[0],
            graph.report, graph.diagnostics[0], graph.verdicts[0], run.log,
            run.log.training[0], bt.choose_algorithm(graph, 10**6)]


def test_what_is_reported_is_plain_data():
    for item in reports():
        for other in (through(item), copy.copy(item), copy.deepcopy(item)):
            assert other == item and type(other) is type(item)


def test_a_report_keeps_its_texts():
    run = a_run()
    certificate, report = run.certificate(), run.learner.graph.report
    assert str(through(certificate)) == str(certificate)
    other = through(report)
    assert other.to_str(2) == report.to_str(2)
    assert (other.verdict_table(), other.counts) == (report.verdict_table(), report.counts)
    assert other._repr_html_() == report._repr_html_()


def test_reports_of_others_differ():
    plans = [bt.memory_plan(bt.compile_etrace_graph(
        bt.nn.init_all_states(bt.nn.GRUCell(3, n)), bt.zeros(3)), "d_rtrl") for n in (4, 5)]
    assert plans[0] != plans[1] and plans[0] != "a plan"


# ---- models ----

@pytest.mark.parametrize("make, text", [
    (lambda: bt.nn.GRUCell(3, 4), r"GRUCell is a model.*state_dict\(\)"),
    (lambda: bt.HiddenState(4), "HiddenState belongs to a model"),
    (lambda: bt.compile(bt.nn.GRUCell(3, 4), "d_rtrl", bt.zeros(3)), r"D_RTRL is compiled.*save"),
    (lambda: bt.compile(bt.nn.GRUCell(3, 4), "d_rtrl", bt.zeros(3)).graph, "refers to its model"),
    (lambda: bt.compile(bt.nn.GRUCell(3, 4), "d_rtrl", bt.zeros(3)).graph.hidden_groups[0],
     "HiddenGroup is part of a compiled graph"),
    (lambda: bt.compile(bt.nn.GRUCell(3, 4), "d_rtrl", bt.zeros(3)).graph.cuts[0],
     "CutEntry is part of a compiled graph"),
])
def test_models_are_refused_with_what_to_do_instead(make, text):
    for move in (pickle.dumps, copy.deepcopy):
        with pytest.raises(bt.NotSupportedError, match=text):
            move(make())


def test_a_class_may_say_itself_how_it_is_pickled():
    again = through(Own(5))
    assert (again.n, again(bt.ones(2)).tolist()) == (5, [5.0, 5.0])


class Own(bt.nn.Module):
    def __init__(self, n):
        super().__init__()
        self.n = n

    def update(self, x):
        return x * float(self.n)

    def __reduce__(self):
        return Own, (self.n,)


def test_numbers_of_a_model_move_to_another(net_class):
    model, other = (bt.nn.init_all_states(net_class(), seed=s) for s in (1, 2))
    other.load_state_dict(through(model.state_dict()))
    np.testing.assert_array_equal(other(bt.ones(3)), model(bt.ones(3)))


def test_another_process_reads_them(tmp_path):
    file = tmp_path / "items"
    file.write_bytes(pickle.dumps((bt.Adam(schedule=bt.schedule.cosine(0.5, 10)),
                                   bt.tasks.copying(delay=3), bt.init.normal(), bt.nn.COBA(1.0))))
    code = ("import pickle, sys; a, t, i, o = pickle.load(open(sys.argv[1], 'rb'));"
            "print(a.learning_rate, t.name, i, o)")
    done = subprocess.run([sys.executable, "-B", "-c", code, file], text=True, check=True,
                          capture_output=True)
    assert done.stdout == "0.5 copying normal(0.0, 1.0) COBA(1.0, 0.001)\n"
