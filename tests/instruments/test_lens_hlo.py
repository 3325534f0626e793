"""Reading HLO text in the forms that the CPU and the GPU backend write it."""

import textwrap

from justafter._lens import _hlo

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
    steps = kernels(GPU)
    assert [(step.raw.name, step.kind) for step in steps] == [
        ("gemm", "custom call __cublas$gemm"),
        ("loop_tanh_fusion", "loop fusion"),
        ("start", "all-reduce-start"),
    ]
    assert _hlo.parse(GPU).partitions == 4


def test_parameters_of_a_fusion_are_written_by_what_is_passed():
    _, fusion, _ = kernels(GPU)
    assert [text for _, text in fusion.inside] == [
        "b.1 = f32[8,8] broadcast(s)",
        "mul.1 = f32[8,8] multiply(p, b.1)",
        "tanh.1 = f32[8,8] tanh(mul.1)",
    ]


def test_strings_with_brackets_and_quotes():
    _, fusion, _ = kernels(GPU)
    assert fusion.inside[-1][0].op_name == 'jit(f)/a, "b" {c/ja_eqn3./tanh'


def test_tuple_types_and_replica_groups():
    gemm, _, start = kernels(GPU)
    assert gemm.raw.type == "(f32[8,8], s8[1024])"
    assert gemm.raw.operands == ("%a.1", "%b.2")
    assert start.raw.attributes["replica_groups"] == "{{0,1},{2,3}}"
    assert start.raw.text({}) == "start = f32[] all-reduce-start(c.1)"


def test_both_forms_of_a_conditional():
    forms = (
        "true_computation=%yes, false_computation=%no",
        "branch_computations={%no, %yes}",
    )
    for form in forms:
        (step,) = kernels(CONDITIONAL.replace("ATTRIBUTES", form))
        assert step.raw.opcode == "negate"
        assert step.where == ("conditional branch 0",)


def test_text_that_is_no_hlo_gives_no_kernels():
    assert _hlo.steps(_hlo.parse("")) == []
    assert _hlo.steps(_hlo.parse("what = is this?\n}")) == []
