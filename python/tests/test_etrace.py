# SPDX-License-Identifier: Apache-2.0
"""The compiled graph from Python: fields, explanations, pictures, options."""
import xml.dom.minidom

import braintrace_cpp as bt
import pytest


@pytest.fixture
def graph(net):
    return bt.compile_etrace_graph(net, bt.zeros(3))


def test_the_fields_of_the_reference_are_there(graph):
    assert list(graph.dict()) == list(graph._fields)
    group = graph.hidden_groups[0]
    assert (group.index, group.num_state, group.varshape) == (0, 1, (4,))
    assert group.hidden_paths == [("rnn", "h")]
    assert graph.hid_path_to_group[("rnn", "h")].index == 0
    paths = {r.weight_path for r in graph.hidden_param_op_relations}
    assert ("rnn", "Wz", "weight") in paths
    assert all(r.primitive.startswith("etp_") for r in graph.hidden_param_op_relations)
    assert graph.hidden_perturb.perturb_hidden_paths == [("rnn", "h")]
    assert graph.module_info.num_var_out == 1


def test_explain_filters_by_weight_hidden_and_kind(graph):
    kind = bt.DiagnosticKind.RELATION_INCLUDED
    records = graph.explain(kind=kind)
    assert records and all(r.kind == kind for r in records)
    weight = ("rnn", "Wz", "weight")
    assert {r.weight_path for r in graph.explain(weight_path=weight)} == {weight}
    assert len(graph.explain()) == len(graph.diagnostics)


def test_every_parameter_has_a_verdict(graph):
    verdicts = {v.path: v.verdict for v in graph.verdicts}
    assert verdicts[("out", "weight")] == "local"
    assert verdicts[("rnn", "Wz", "weight")] == "direct"
    assert "rnn/Wz/weight" in graph.report._repr_html_()


def test_compat_gives_the_graph_of_the_reference(net):
    reference = bt.compile_etrace_graph(net, bt.zeros(3), compat=True)
    excluded = reference.explain(kind=bt.DiagnosticKind.RELATION_EXCLUDED_WEIGHT_TO_WEIGHT)
    assert [r.weight_path for r in excluded] == [("rnn", "Wr", "weight")]
    same = bt.compile_etrace_graph(net, bt.zeros(3), weight_paths="exclude")
    assert len(same.hidden_param_op_relations) == len(reference.hidden_param_op_relations)


def test_unknown_options_are_refused(net):
    with pytest.raises(TypeError, match="no option 'mixng'"):
        bt.compile_etrace_graph(net, bt.zeros(3), mixng="cut")
    with pytest.raises(ValueError, match="mixing must be one of"):
        bt.compile_etrace_graph(net, bt.zeros(3), mixing="maybe")


def test_pictures_are_xml_and_pages_hold_the_graph(graph):
    xml.dom.minidom.parseString(graph.to_svg())
    assert "<svg" in graph._repr_html_()
    assert "Wz" in graph.to_html("my model")
    assert graph.to_dot().startswith("digraph")
    assert "tanh" in bt.trace_step(bt.nn.init_all_states(bt.nn.GRUCell(2, 2)),
                                   bt.zeros(2)).to_code()


def test_perturbations_move_the_outputs(graph):
    zero = graph.call_hidden_perturb([bt.ones(3)], graph.hidden_perturb.init_perturb_data())
    moved = graph.call_hidden_perturb([bt.ones(3)], [bt.ones(4)])
    assert abs(float((moved[0] - zero[0]).sum())) > 1e-3
    shift = moved[1][("rnn", "h")] - zero[1][("rnn", "h")]
    assert shift.numpy().round(5).tolist() == [1, 1, 1, 1]


def test_the_graph_survives_the_model(net):
    graph = bt.compile_etrace_graph(bt.nn.init_all_states(bt.nn.GRUCell(2, 2)), bt.zeros(2))
    assert graph.hidden_groups[0].hidden_states[0].value.shape == (2,)
