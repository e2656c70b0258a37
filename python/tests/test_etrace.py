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


# Every public name of the reference's compiler pages and of its data structures.
NAMES = {
    bt: """compile_etrace_graph ETraceGraph extract_module_info ModuleInfo HiddenGroup
        find_hidden_groups_from_minfo find_hidden_groups_from_module HiddenParamOpRelation
        find_hidden_param_op_relations_from_minfo find_hidden_param_op_relations_from_module
        HiddenPerturbation add_hidden_perturbation_from_minfo add_hidden_perturbation_in_module
        ETraceGraphExecutor ETraceVjpGraphExecutor CompilationRecord CompilationReport
        DiagnosticKind DiagnosticLevel ControlFlowPolicy SnapPattern ScanDescentInfo compile""",
    bt.ETraceGraph: """module_info hidden_groups hid_path_to_group hidden_param_op_relations
        hidden_perturb diagnostics explain call_hidden_perturb dict""",
    bt.ModuleInfo: """stateful_model closed_jaxpr jaxpr retrieved_model_states compiled_model_states
        state_id_to_path state_tree_invars state_tree_outvars hidden_path_to_invar
        hidden_path_to_outvar invar_to_hidden_path outvar_to_hidden_path hidden_outvar_to_invar
        weight_invars weight_path_to_invars invar_to_weight_path num_var_out num_var_state
        control_flow add_jaxpr_outs split_state_outvars jaxpr_call dict""",
    bt.HiddenGroup: """index hidden_paths hidden_states hidden_invars hidden_outvars transition_jaxpr
        transition_jaxpr_constvars is_diagonal_recurrence snap descent varshape num_state
        trace_state_width check_consistent_varshape transition concat_hidden split_hidden
        diagonal_jacobian full_jacobian dict""",
    bt.HiddenParamOpRelation: """primitive x_var y_var x y path weight_path y_to_hidden_group_jaxprs
        connected_hidden_paths path_classification trainable_vars trainable_paths
        trainable_leaf_indices trainable_param_states trainable_processing_chains
        control_flow_context y_to_hidden_groups dict""",
    bt.HiddenPerturbation: """perturb_vars perturb_hidden_paths perturb_hidden_states perturb_jaxpr
        eval eval_jaxpr init_perturb_data perturb_data_to_hidden_group_data""",
    bt.CompilationRecord: "kind level message primitive weight_path hidden_paths context",
    bt.CompilationReport: """hidden_groups etrace_weights excluded_weights dynamic_states diagnostics
        counts to_str""",
    bt.ControlFlowPolicy: """cond scan_unroll_limit while_hidden etp_in_control_flow scan_descent
        fixpoint_iteration_limit""",
    bt.SnapPattern: """n varshape axes neighbours valid conservative reason num_position num_neighbour
        is_degenerate is_saturated""",
    bt.ScanDescentInfo: "length num_consts num_carry body_jaxpr stacked_var_map scan_eqn_id",
    bt.ETraceGraphExecutor: """compile_graph graph path_to_states states show_graph solve_h2w_h2h_jacobian
        solve_h2w_h2h_l2h_jacobian""",
}
KINDS = """RELATION_INCLUDED RELATION_EXCLUDED_NO_PARAMSTATE RELATION_EXCLUDED_NON_TEMPORAL
    RELATION_EXCLUDED_SHAPE_MISMATCH RELATION_EXCLUDED_WEIGHT_TO_WEIGHT RELATION_PARTIAL_PATH
    TRAINABLE_INVAR_NOT_PARAMSTATE COND_IF_CONVERTED COND_CONVERSION_SKIPPED SCAN_UNROLLED
    SCAN_UNROLL_SKIPPED RELATION_EXCLUDED_SLICED_WEIGHT SCAN_DESCENT_APPLIED SCAN_DESCENT_SKIPPED
    SCAN_DESCENT_NO_RELATIONS WEIGHT_IN_WHILE WEIGHT_IN_CONTROL_FLOW CONTROL_FLOW_OPAQUE_FWD
    CONTROL_FLOW_RECURRENT_MIXING PRIMITIVE_INSIDE_NESTED_JIT PRIMITIVE_INSIDE_CONTROL_FLOW
    MULTI_OUTPUT_PRIMITIVE_DETECTED PYTREE_WEIGHT_LEAF_AMBIGUOUS SNAP_PATTERN_CONSERVATIVE
    SNAP_PATTERN_DEGENERATE TRANSITION_TAIL_BOUNDED HIDDEN_GROUP_MERGED STATE_MISMATCH"""


@pytest.mark.parametrize("owner", NAMES, ids=lambda o: o.__name__)
def test_every_name_of_the_reference_exists(owner):
    assert [n for n in NAMES[owner].split() if not hasattr(owner, n)] == []


def test_every_kind_and_level_of_the_reference_exists():
    assert [k for k in KINDS.split() if not hasattr(bt.DiagnosticKind, k)] == []
    assert [level for level in ("INFO", "WARNING", "ERROR") if not hasattr(bt.DiagnosticLevel, level)] == []


def test_tables_of_a_traced_step(net):
    info = bt.extract_module_info(net, bt.zeros(3))
    h = ("rnn", "h")
    assert list(info.hidden_path_to_invar) == list(info.hidden_path_to_outvar) == [h]
    entry, leave = info.hidden_path_to_invar[h], info.hidden_path_to_outvar[h]
    assert info.hidden_outvar_to_invar == {leave: entry}
    assert info.invar_to_hidden_path == {entry: h} and info.outvar_to_hidden_path == {leave: h}
    leaves = info.weight_path_to_invars[("out", "weight")]
    assert len(leaves) == 2 and all(info.invar_to_weight_path[v] == ("out", "weight") for v in leaves)
    assert len(info.weight_invars) == 8
    assert list(info.retrieved_model_states) == sorted(info.retrieved_model_states)
    first = info.compiled_model_states[0]
    assert info.state_id_to_path[first] == h and first.value.shape == (4,)
    assert info.state_tree_invars[0] == [entry] and info.state_tree_outvars[0] == [leave]
    weight, hidden, other = info.split_state_outvars()
    assert hidden == [leave] and len(weight) == 8 and other == []
    more = info.add_jaxpr_outs([entry])
    assert more.num_var_out == 1 and entry in more.jaxpr_call(bt.ones(3))[3]


def test_an_executor_lists_the_states_of_its_step(net):
    executor = bt.ETraceGraphExecutor(net)
    with pytest.raises(ValueError, match="compile_graph"):
        executor.graph
    executor.compile_graph(bt.zeros(3))
    by_path = executor.path_to_states
    assert executor.states == list(by_path.values())
    assert list(by_path) == list(executor.graph.module_info.retrieved_model_states)
    assert executor.show_graph(return_msg=True).startswith("=" * 120 + "\nThe hidden groups are:")


def test_what_a_relation_knows_of_its_weights(net):
    relation = bt.compile_etrace_graph(net, bt.zeros(3)).hidden_param_op_relations[0]
    assert list(relation.trainable_vars) == ["weight", "bias"]
    assert relation.trainable_leaf_indices == {"weight": 1, "bias": 0}
    assert relation.trainable_paths["bias"] == ("rnn", "Wz", "weight")
    assert relation.trainable_processing_chains == {"weight": [], "bias": []}
    assert relation.trainable_param_states["weight"].value["weight"].shape == (7, 4)
    assert (relation.x_var, relation.y_var) == (relation.x, relation.y)
    assert isinstance(relation.eqn_params, dict)


def test_tails_give_the_states_of_the_step(net):
    graph = bt.compile_etrace_graph(net, bt.zeros(3))
    _, hidden, _, temps = graph.module_info.jaxpr_call(bt.ones(3))
    relation = graph.hidden_param_op_relations[0]
    constants = [[temps[v] for v in ids] for ids in relation.tail_constants]
    (whole,) = relation.y_to_hidden_groups(temps[relation.y], constants)
    ((member,),) = relation.y_to_hidden_groups(temps[relation.y], constants,
                                               concat_hidden_vals=False)
    assert whole.shape == (4, 1) and member.shape == (4,)
    assert abs(member - hidden[("rnn", "h")]).numpy().max() < 1e-6


def test_the_passes_one_by_one_give_the_graph(net):
    graph = bt.compile_etrace_graph(net, bt.zeros(3))
    info = bt.extract_module_info(net, bt.zeros(3))
    groups, by_path = bt.find_hidden_groups_from_minfo(info)
    assert [g.hidden_paths for g in groups] == [g.hidden_paths for g in graph.hidden_groups]
    assert by_path[("rnn", "h")].transition_jaxpr == graph.hidden_groups[0].transition_jaxpr
    wanted = [r.path for r in graph.hidden_param_op_relations]
    for given in (groups, by_path):
        found = bt.find_hidden_param_op_relations_from_minfo(info, given)
        assert [r.path for r in found] == wanted
        assert found[0].hidden_groups[0].index == 0
    assert [r.path for r in bt.find_hidden_param_op_relations_from_module(net, bt.zeros(3))] == wanted
    assert bt.find_hidden_groups_from_module(net, bt.zeros(3))[0][0].varshape == (4,)
    perturbed = bt.add_hidden_perturbation_from_minfo(info)
    same = bt.add_hidden_perturbation_in_module(net, bt.zeros(3))
    assert perturbed.perturb_jaxpr == same.perturb_jaxpr
    assert len(perturbed.perturb_vars) == 1
    (data,) = perturbed.perturb_data_to_hidden_group_data([bt.ones(4)], groups)
    assert data.shape == (4, 1)
    with pytest.raises(ValueError, match="1 states are perturbed, got 0"):
        perturbed.perturb_data_to_hidden_group_data([], groups)


def test_parts_keep_their_model_alive():
    def cell():
        return bt.nn.init_all_states(bt.nn.GRUCell(2, 2))

    info = bt.extract_module_info(cell(), bt.zeros(2))
    relations = bt.find_hidden_param_op_relations_from_minfo(
        info, bt.find_hidden_groups_from_minfo(info)[0])
    del info
    assert relations[0].trainable_param_states["weight"].value["weight"].shape == (4, 2)
    groups, _ = bt.find_hidden_groups_from_module(cell(), bt.zeros(2))
    assert groups[0].hidden_states[0].value.shape == (2,)


def test_control_flow_policy(net):
    policy = bt.ControlFlowPolicy(scan_unroll_limit=4, scan_descent="off")
    assert (policy.cond, policy.scan_unroll_limit, policy.scan_descent) == ("convert", 4, "off")
    assert policy == bt.ControlFlowPolicy(scan_descent="off", scan_unroll_limit=4)
    assert policy != bt.ControlFlowPolicy() and "scan_unroll_limit=4" in repr(policy)
    assert len({policy, bt.ControlFlowPolicy()}) == 2
    with pytest.raises(AttributeError):
        policy.cond = "opaque"
    with pytest.raises(ValueError, match="scan_descent"):
        bt.ControlFlowPolicy(scan_descent="sometimes")
    with pytest.raises(TypeError, match="no knob 'scan'"):
        bt.ControlFlowPolicy(scan=1)
    info = bt.extract_module_info(net, bt.zeros(3), control_flow=policy)
    assert info.control_flow == policy
    graph = bt.compile_etrace_graph(net, bt.zeros(3), control_flow={"scan_descent": "off"})
    assert graph.module_info.control_flow.scan_descent == "off"


def test_an_unused_parameter_has_a_verdict_and_no_count(net):
    net.spare = bt.nn.Linear(2, 2)
    bt.nn.init_all_states(net)
    graph = bt.compile_etrace_graph(net, bt.zeros(3))
    verdict = {v.path: v for v in graph.verdicts}[("spare", "weight")]
    assert (verdict.verdict, verdict.reason) == ("local", "the step does not use it")
    assert graph.module_info.unused_params == [("spare", "weight")]
    assert graph.report.counts["etrace_parameters"] == 3
    assert graph.report.counts["etrace_weights"] == 6
    kinds = [r.kind for r in graph.explain(weight_path=("spare", "weight"))]
    assert kinds == [bt.DiagnosticKind.STATE_MISMATCH, bt.DiagnosticKind.PARAMETER_LOCAL]


def test_records_name_the_line_of_python():
    class Sliced(bt.nn.Module):
        def __init__(self):
            super().__init__()
            self.h, self.k = bt.HiddenState((4,)), bt.HiddenState((2,))

        def update(self, x):
            self.h.value = 0.9 * self.h.value + x
            self.k.value = 0.5 * self.k.value + self.h.value[:2]
            return self.k.value

    graph = bt.compile_etrace_graph(bt.nn.init_all_states(Sliced()), bt.zeros(4))
    (cut,) = graph.explain(kind=bt.DiagnosticKind.HISTORY_CUT)
    assert cut.message.startswith("slice at test_etrace.py:")


@pytest.mark.parametrize("mixed", [
    lambda h: bt.mean(h),
    lambda h: h.mean(),
    lambda h: bt.softmax(h),
    lambda h: bt.concatenate([h[1:], h[:1]]),
    lambda h: bt.reshape(bt.avg_pool(bt.reshape(h, (1, 4, 1)), 3, 1, padding="SAME"), (4,)),
    lambda h: bt.while_loop(lambda c: bt.sum(c) > 9.0, lambda c: bt.roll(c, 1), h)])
def test_functions_of_several_ops_name_the_line_that_calls_them(mixed):
    class Mixed(bt.nn.Module):
        def __init__(self):
            super().__init__()
            self.h = bt.HiddenState((4,))

        def update(self, x):
            self.h.value = 0.9 * self.h.value + x + mixed(self.h.value)
            return self.h.value

    graph = bt.compile_etrace_graph(bt.nn.init_all_states(Mixed()), bt.zeros(4))
    cuts = graph.explain(kind=bt.DiagnosticKind.HISTORY_CUT)
    assert cuts and all(" at test_etrace.py:" in cut.message for cut in cuts), cuts


# ---- the graph as a named tuple ----


@pytest.fixture
def gru_graph():
    gru = bt.nn.init_all_states(bt.nn.GRUCell(3, 4), seed=1)
    return bt.compile_etrace_graph(gru, bt.zeros(3))


def test_a_graph_is_read_as_a_named_tuple(gru_graph):
    assert len(gru_graph) == len(bt.ETraceGraph._fields) == len(tuple(gru_graph))
    minfo, groups, by_path, *_, records = gru_graph
    assert minfo is gru_graph.module_info is gru_graph[0] and records == gru_graph[-1]
    assert list(gru_graph._asdict()) == list(bt.ETraceGraph._fields)
    assert gru_graph[1:3] == (groups, by_path)
    assert repr(gru_graph).startswith("ETraceGraph(hidden_groups=1, ")


def test_groups_and_records_of_a_graph_are_equal_wherever_they_are_found(gru_graph):
    assert gru_graph.hid_path_to_group[("h",)] == gru_graph.hidden_groups[0]
    records = gru_graph.explain()
    assert isinstance(records, tuple) and records == gru_graph.diagnostics
    assert len(set(records + gru_graph.diagnostics)) == len(set(records)) > 1


def test_states_go_into_a_step_as_their_values(gru_graph):
    states = [s.value for s in gru_graph.module_info.compiled_model_states]
    none = gru_graph.hidden_perturb.init_perturb_data()
    want = gru_graph.call_hidden_perturb((bt.ones(3),), none)
    given = gru_graph.call_hidden_perturb((bt.ones(3),), none, old_state_vals=states)
    turned = [dict(reversed(s.items())) if isinstance(s, dict) else s for s in states]
    again = gru_graph.call_hidden_perturb((bt.ones(3),), none, old_state_vals=turned)
    assert want[0].tolist() == given[0].tolist() == again[0].tolist()


def test_an_executor_refuses_to_be_compiled_for_other_inputs():
    executor = bt.ETraceGraphExecutor(bt.nn.init_all_states(bt.nn.GRUCell(3, 4)))
    executor.compile_graph(bt.zeros(3))
    executor.compile_graph(bt.ones(3))
    with pytest.raises(bt.UserRuntimeError, match=r"f32\[3\]\), got \(f32\[7\]\)"):
        executor.compile_graph(bt.zeros(7))


def test_a_graph_is_copied_with_other_fields(gru_graph):
    bare = gru_graph._replace(diagnostics=(), hidden_perturb=None)
    assert bare.diagnostics == () and bare.hidden_perturb is None and len(gru_graph.diagnostics)
    assert bare.hidden_groups[0].hidden_paths == [("h",)]
    again = bare._replace(diagnostics=gru_graph.diagnostics)
    assert again.diagnostics == gru_graph.diagnostics
    with pytest.raises(bt.UserValueError, match="'nothing' is no field"):
        gru_graph._replace(nothing=1)
