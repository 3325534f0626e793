"""Reading HLO text in the forms that the CPU and the GPU backend write it."""

import textwrap
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import pytest

from justafter import lens
from justafter._lens import _costs, _hlo

# Written for this test, in the GPU backend's form: a library call, a triton
# fusion, an asynchronous reduction over devices, a command buffer, old-style
# operands with types, TPU-style layouts, and awkward strings.
GPU = textwrap.dedent(
    r"""
    HloModule jit_f, is_scheduled=true, num_partitions=4

    FileNames
    1 "/home/me/my \"quoted\" file.py"

    FunctionNames
    1 "f"

    FileLocations
    1 {file_name_id=1 function_name_id=1 line=7 end_line=8 column=4 end_column=9}

    StackFrames
    1 {file_location_id=1 parent_frame_id=1}


    %add (x.1: f32[], y.1: f32[]) -> f32[] {
      %x.1 = f32[] parameter(0)
      %y.1 = f32[] parameter(1)
      ROOT %add.9 = f32[] add(%x.1, %y.1)
    }

    %fused_tanh (param_0.1: f32[8,8], param_1.1: f32[]) -> f32[8,8] {
      %param_0.1 = f32[8,8]{1,0} parameter(0)
      %param_1.1 = f32[] parameter(1)
      %b.1 = f32[8,8]{1,0} broadcast(%param_1.1), dimensions={}, metadata={op_name="jit(f)/ja_eqn2./mul" stack_frame_id=1}
      %mul.1 = f32[8,8]{1,0} multiply(%param_0.1, %b.1), metadata={op_name="jit(f)/ja_eqn2./mul" stack_frame_id=1}
      ROOT %tanh.1 = f32[8,8]{1,0} tanh(%mul.1), metadata={op_name="jit(f)/a, \"b\" {c/ja_eqn3./tanh" stack_frame_id=1}
    }

    %command_buffer (p: f32[8,8], s: f32[]) -> f32[8,8] {
      %p = f32[8,8]{1,0:T(8,128)} parameter(0)
      %s = f32[] parameter(1)
      ROOT %loop_tanh_fusion = f32[8,8]{1,0} fusion(f32[8,8]{1,0} %p, f32[] %s), kind=kLoop, calls=%fused_tanh, backend_config={"note":"} , calls=%nothing"}
    }

    ENTRY %main.7 (a.1: f32[8,8], b.2: f32[8,8]) -> (f32[8,8], /*index=1*/f32[]) {
      %a.1 = f32[8,8]{1,0} parameter(0), metadata={op_name="a"}
      %b.2 = f32[8,8]{1,0} parameter(1), metadata={op_name="b"}
      %c.1 = f32[] constant(0.5)
      %gemm = (f32[8,8]{1,0}, s8[1024]{0}) custom-call(%a.1, %b.2), custom_call_target="__cublas$gemm", metadata={op_name="jit(f)/ja_eqn1./dot_general"}, backend_config={"alpha":1}
      %gte = f32[8,8]{1,0} get-tuple-element(%gemm), index=0
      %call = f32[8,8]{1,0} call(%gte, %c.1), to_apply=%command_buffer
      %start = f32[] all-reduce-start(%c.1), channel_id=1, replica_groups={{0,1},{2,3}}, to_apply=%add
      %done = f32[] all-reduce-done(%start)
      ROOT %out = (f32[8,8]{1,0}, f32[]) tuple(%call, %done)
    }
    """  # noqa: E501
).strip()

CONDITIONAL = """
%yes (t: f32[]) -> f32[] {
  ROOT %t = f32[] parameter(0)
}

%no (u: f32[]) -> f32[] {
  %u = f32[] parameter(0)
  ROOT %neg = f32[] negate(%u)
}

ENTRY %main (p: pred[], x: f32[]) -> f32[] {
  %p = pred[] parameter(0)
  %x = f32[] parameter(1)
  ROOT %c = f32[] conditional(%p, %x, %x), ATTRIBUTES
}
"""


def kernels(text: str) -> list[_hlo.Step]:
    return [step for step in _hlo.steps(_hlo.parse(text)) if step.is_kernel]


def test_gpu_kernels():
    gemm, fusion, start = kernels(GPU)
    assert (gemm.raw.name, gemm.kind) == ("gemm", "custom call __cublas$gemm")
    assert (fusion.raw.name, fusion.kind) == ("loop_tanh_fusion", "loop fusion")
    assert (start.raw.name, start.kind) == ("start", "all-reduce-start")
    assert _hlo.parse(GPU).partitions == 4
    # Types of tuples, and groups of replicas.
    assert gemm.raw.type == "(f32[8,8], s8[1024])"
    assert gemm.raw.operands == ("%a.1", "%b.2")
    assert start.raw.attributes["replica_groups"] == "{{0,1},{2,3}}"
    assert start.raw.text({}) == "start = f32[] all-reduce-start(c.1)"


def test_parameters_of_a_fusion_are_written_by_what_is_passed():
    _, fusion, _ = kernels(GPU)
    assert [text for _, text in fusion.inside] == [
        "b.1 = f32[8,8] broadcast(s)",
        "mul.1 = f32[8,8] multiply(p, b.1)",
        "tanh.1 = f32[8,8] tanh(mul.1)",
    ]
    # A string with brackets and quotes.
    assert fusion.inside[-1][0].op_name == 'jit(f)/a, "b" {c/ja_eqn3./tanh'


def test_both_forms_of_a_conditional():
    two = "true_computation=%yes, false_computation=%no"
    for form in (two, "branch_computations={%no, %yes}"):
        (step,) = kernels(CONDITIONAL.replace("ATTRIBUTES", form))
        assert step.raw.opcode == "negate"
        assert step.where == ("conditional branch 0",)


def test_text_that_is_no_hlo_gives_no_kernels():
    assert _hlo.steps(_hlo.parse("")) == []
    assert _hlo.steps(_hlo.parse("what = is this?\n}")) == []


def test_costs_of_gpu_kernels(monkeypatch):
    asked, devices = [], jax.devices

    def only_for_cpus(platform=None):  # the client of a GPU makes no analysis
        asked.append(platform)
        return devices("cpu") if platform == "cpu" else []

    monkeypatch.setattr(jax, "devices", only_for_cpus)
    module = _hlo.parse(GPU)
    product, fusion, _ = (_costs._of(module, one.raw) for one in kernels(GPU))
    assert fusion.flops == 2 * 8 * 8
    assert fusion.bytes_accessed == 4 * (8 * 8 + 1 + 8 * 8)
    assert set(asked) == {"cpu"}
    assert product.flops is product.bytes_accessed is None


def test_events_without_a_run_are_divided_among_the_calls():
    # Two calls of a program with a loop of two turns, as a GPU's profile has them.
    events = [
        (3.0, "body", None, 4.0),
        (1.0, "first", None, 1.0),
        (2.0, "body", None, 2.0),
        (5.0, "first", None, 3.0),
        (7.0, "body", None, 16.0),
        (6.0, "body", None, 8.0),
    ]
    first, second = _costs.by_run(events, 2).values()
    assert first == {"first": 1.0, "body": 6.0}
    assert second == {"first": 3.0, "body": 24.0}
    named = [(0.0, "a", 7, 1.0), (1.0, "a", 7, 1.0), (2.0, "a", 8, 1.0)]
    assert _costs.by_run(named, 2) == {7: {"a": 2.0}, 8: {"a": 1.0}}


def test_kernels_of_a_cuda_graph_go_by_their_functions(monkeypatch):
    # As a profile of an H100 had them: equal kernels are runs of two functions.
    hlo = "".join(
        f'%dot.{i} = f32[3] fusion(%x), metadata={{deduplicated_name="dot.1"}}\n'
        for i in (1, 2, 3)
    )
    kernels = [SimpleNamespace(name=f"dot.{i}", runs=1) for i in (1, 2, 3)]
    kernels.append(SimpleNamespace(name="add.4", runs=1))
    graph = {"hlo_op": "command_buffer_5"}
    ran = [("dot_1", graph), ("dot_2", graph), ("MemcpyD2D", {}), ("add_4", graph)]
    ran += [("dot_2", graph), ("sort_6", graph), ("sm90_gemm", {"hlo_op": "add.4"})]
    events = [
        SimpleNamespace(name=name, stats=stats, start_ns=i, duration_ns=1e9)
        for i, (name, stats) in enumerate(ran)
    ]
    line = SimpleNamespace(events=events)
    plane = SimpleNamespace(name="/device:GPU:0", lines=[line])
    data = SimpleNamespace(from_file=lambda _: SimpleNamespace(planes=[plane]))
    monkeypatch.setattr(jax.profiler, "ProfileData", data)

    def names():
        return [name for _, name, *_ in _costs._events("", hlo, kernels)]

    other = ["None", "command_buffer_5"]
    expected = ["dot.1", "dot.2", other[0], "add.4", "dot.3", other[1], "add.4"]
    assert names() == expected
    kernels[2].runs = 50  # in a loop: which of the three it was is not known
    assert [one for one in names() if one not in other] == ["add.4", "add.4"]


def test_times_that_are_no_kernels_are_an_error(monkeypatch):
    # A GPU may run kernels as one CUDA graph, whose name is that of no kernel.
    graph = [(0.0, "command_buffer", None, 1)]
    monkeypatch.setattr(_costs, "_events", lambda *_: graph)
    x = jnp.ones(3)
    with pytest.raises(RuntimeError, match="gave no times of kernels on cpu"):
        lens(lambda x: jnp.sin(x) * 2, x).table(x)
