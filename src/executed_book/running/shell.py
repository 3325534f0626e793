"""An IPython shell that runs cells and collects what they show."""

import ast
import os
import re
import sys
import warnings
from collections.abc import Collection
from importlib.util import find_spec
from time import perf_counter
from typing import Any

from ..model import CellResult, Failure, ValueResult
from .failures import cell_file, failure_of
from .outputs import OutputLimit, Outputs, text_stream
from .reached import Reached

#: The failure of a cell that gave more than it may; its message says of what.
OVER_LIMIT = "OutputLimit"

#: What needs an event loop that runs, as it does in a notebook.
_STARTS_TASKS = re.compile(r"\b(?:create_task|ensure_future|get_running_loop)\(")

#: What Matplotlib writes into files of these formats besides the figure.
_DATED = dict.fromkeys(("png", "png2x", "retina"), "Software") | {"svg": "Date"}


class Shell:
    """A shell one chapter long. What cells write below Python comes from `below`."""

    def __init__(
        self, docname: str, outputs: Outputs, figures: str, style: dict[str, Any]
    ) -> None:
        self.outputs = outputs
        for descriptor, name in ((1, "stdout"), (2, "stderr")):
            # Logging and the like write to the second of the two names.
            stream = text_stream(name, self.outputs, descriptor)
            setattr(sys, name, stream)
            setattr(sys, f"__{name}__", stream)
        warnings.formatwarning = _short_warning
        self._ipython = _make_ipython(self.outputs)
        self._reached = Reached()
        _inline_figures(self._ipython, figures, {**style, "svg.hashsalt": docname})

    def run(
        self, number: int, source: str, is_check: bool = False
    ) -> tuple[float, Failure | None]:
        """Run one cell: how long it took (seconds), and its failure if it had one.

        Of a check `result` says which assertions ran. An exception while a value is
        displayed is the cell's, as it is at the prompt.
        """
        ipython = self._ipython
        self.outputs.clear()
        self._reached.start()
        # IPython goes through code that anything transforms, as deep as it is nested.
        if self._reached in ipython.ast_transformers:
            ipython.ast_transformers.remove(self._reached)
        if is_check:
            ipython.ast_transformers.append(self._reached)
        ipython.compile.cell = number
        ipython.while_displaying = None
        began = perf_counter()
        error: BaseException | None = None
        try:
            # With history, values are numbered, and `_` is the last of them.
            result = ipython.run_cell(source, store_history=True)
            error = result.error_before_exec or result.error_in_exec
            error = error or ipython.while_displaying
            _settle()
        except OutputLimit:
            pass  # `result` finds that the outputs are over it
        except Exception as raised:  # by what JAX was still to print
            error = error or raised
        seconds = perf_counter() - began
        if error is None or isinstance(error, OutputLimit):
            return seconds, None
        return seconds, failure_of(error, number, _last_line(source))

    def evaluate(self, expression: str) -> ValueResult:
        """The text of an `expression` or `expression:format`, as f-strings do."""
        # As it stands, not as `repr` writes it, which would escape what is in it. The
        # space keeps the brace of a set or a dict from being read as an escaped one.
        space = " " if expression.startswith("{") else ""
        code = f'f"""{{{space}{expression}}}"""'
        self.outputs.clear()
        try:
            # The chapter's own code, in the chapter's own namespace.
            text = str(eval(code, self._ipython.user_ns))
            text.encode("utf-8")
        except Exception as error:
            return ValueResult(error=f"{type(error).__name__}: {error}")
        except OutputLimit:
            return ValueResult(error="it prints without end")
        return ValueResult(text)

    def result(
        self, seconds: float, failure: Failure | None, values: tuple[ValueResult, ...]
    ) -> CellResult:
        """All that the cell gave; `values` are of the expressions after it."""
        if self.outputs.over:
            failure = Failure(OVER_LIMIT, (), self.outputs.over, 1, "")
            return CellResult((), seconds, failure, values)
        if failure is not None:
            self.outputs.failure(failure)
        outputs, (reached, missed) = self.outputs.items(), self._reached.result()
        return CellResult(
            tuple(outputs), seconds, failure, values, reached=reached, missed=missed
        )


def _last_line(source: str) -> int:
    """Where the last statement of a cell begins: the one whose value is displayed."""
    try:
        body = ast.parse(source).body
    except SyntaxError:  # magics, say
        return max(1, len(source.rstrip().splitlines()))
    return body[-1].lineno if body else 1


def _short_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    line: str | None = None,
) -> str:
    """A warning without the path of the file that gave it."""
    return f"{category.__name__}: {message}\n"


def _make_ipython(outputs: Outputs) -> Any:
    """An IPython shell that keeps no history and sends outputs to `outputs`."""
    from IPython.core.compilerop import CachingCompiler
    from IPython.core.displayhook import DisplayHook
    from IPython.core.displaypub import DisplayPublisher
    from IPython.core.interactiveshell import InteractiveShell
    from traitlets import Type
    from traitlets.config import Config

    class Compiler(CachingCompiler):
        cell = 0

        def get_code_name(self, raw_code: str, code: str, number: int) -> str:
            return cell_file(self.cell)

    class Publisher(DisplayPublisher):
        def publish(
            self, data: Any, metadata: Any = None, *args: Any, **kwargs: Any
        ) -> None:
            name = (kwargs.get("transient") or {}).get("display_id")
            update = kwargs.get("update", False)
            outputs.rich("display_data", data, metadata or {}, name=name, update=update)

        def clear_output(self, wait: bool = False) -> None:
            outputs.forget(wait)

    class Hook(DisplayHook):
        def write_output_prompt(self) -> None:
            pass

        def write_format_data(self, format_dict: Any, md_dict: Any = None) -> None:
            # Nothing to show: its formatter failed, which `showtraceback` noted.
            if format_dict:
                count = self.prompt_count
                outputs.rich("execute_result", format_dict, md_dict or {}, count)

    class Interactive(InteractiveShell):
        compiler_class = Type(Compiler)
        display_pub_class = Type(Publisher)
        displayhook_class = Type(Hook)
        while_displaying: BaseException | None = None
        depth = 0

        def run_cell(self, *args: Any, **kw: Any) -> Any:
            """Run a cell, or what a cell gives to be run as one."""
            self.depth += 1
            try:
                return super().run_cell(*args, **kw)  # type: ignore[no-untyped-call]
            finally:
                self.depth -= 1

        def showtraceback(self, exc_tuple: Any = None, *args: Any, **kw: Any) -> None:
            """Note what went wrong: IPython tells of a failing display only here."""
            error = (exc_tuple or sys.exc_info())[1]
            if self.depth > 1 and error is not None:
                # The cell that has another run goes on, and shows how that one ended.
                outputs.failure(failure_of(error, self.compile.cell))  # type: ignore[attr-defined]
            elif self.while_displaying is None:
                self.while_displaying = error

        def system(self, cmd: str) -> None:
            """Run a line after `!`, in a terminal of its own: no event tells of it."""
            sys.audit("os.system", cmd)
            if cmd.rstrip().endswith("&"):
                way = "start it with subprocess.Popen"
                raise OSError(f"a line after ! cannot run in the background: {way}")
            self.system_piped(cmd)  # type: ignore[no-untyped-call]

        def should_run_async(self, raw_cell: str, **kw: Any) -> bool:
            """Give a cell an event loop also where it starts tasks and awaits none."""
            if _STARTS_TASKS.search(raw_cell) and "asyncio.run(" not in raw_cell:
                return True
            return bool(super().should_run_async(raw_cell, **kw))

        def ask_exit(self) -> None:
            """End a cell that says `exit()` or `quit()`."""
            raise SystemExit

        def enable_gui(self, gui: Any = None) -> None:
            """Figures are shown in line whatever `%matplotlib` asks for."""

        def showsyntaxerror(self, *args: Any, **kwargs: Any) -> None:
            """Code that does not parse is reported from the cell's result."""
            if self.depth > 1:
                self.showtraceback()

    config = Config()
    config.HistoryManager.enabled = False
    if home := os.environ.get("IPYTHONDIR"):
        # Else IPython makes a folder elsewhere when this one has just been removed.
        config.InteractiveShell.ipython_dir = home
    config.InteractiveShell.colors = "nocolor"
    config.InteractiveShell.banner1 = ""
    # Show what a bare interpreter shows: IPython's own printer wraps at 80.
    config.PlainTextFormatter.pprint = False
    return Interactive.instance(config=config)


def _inline_figures(ipython: Any, figures: str, style: dict[str, Any]) -> None:
    """Show figures below the cell that draws them, without the date in them."""
    if find_spec("matplotlib") is None:
        return
    import matplotlib as mpl
    from matplotlib_inline.backend_inline import (
        configure_inline_support,
        set_matplotlib_formats,
    )
    from matplotlib_inline.config import InlineBackend

    backend = "module://matplotlib_inline.backend_inline"
    mpl.use(backend)
    mpl.interactive(True)  # a figure is shown whether or not the cell says `show`
    configure_inline_support(ipython, backend)
    settings = InlineBackend.instance(parent=ipython)
    saving = _undated({figures})
    settings.print_figure_kwargs = saving
    set_matplotlib_formats(figures, **saving)

    def choose(change: Any) -> None:
        settings.print_figure_kwargs = _undated(change["new"])

    settings.observe(choose, "figure_formats")
    for name, value in style.items():  # any of the names that Matplotlib knows
        mpl.rcParams[name] = value  # type: ignore[index]


def _undated(formats: Collection[str]) -> dict[str, Any]:
    """How to save figures without the date or the version of what drew them."""
    names = {_DATED[name] for name in formats if name in _DATED}
    # Each format refuses the other's name.
    metadata = dict.fromkeys(names) if len(names) == 1 else None
    return {"bbox_inches": "tight"} | ({"metadata": metadata} if metadata else {})


def _settle() -> None:
    """Wait for what the cell asked JAX to print from inside compiled code."""
    jax = sys.modules.get("jax")
    if jax is not None and hasattr(jax, "effects_barrier"):
        jax.effects_barrier()
