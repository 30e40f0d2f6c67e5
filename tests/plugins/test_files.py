"""Kinds in files that a specification or a command lists."""

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from mesascope.cli import main
from mesascope.models._specified import LayerKind
from mesascope.specs import (
    SpecError,
    component,
    default_plugins,
    kind_of_function,
    known_kinds,
    load_plugin,
    set_default_plugins,
)
from mesascope.studies import FlowSpec, parse_spec, read_spec

LAW = '''
from math import factorial
from mesascope.processes import IdenticalLaw
from mesascope.specs import Scale, kind

@kind("{name}")
class Law(IdenticalLaw):
    """A law of a file.

    Args:
        scale: b > 0.
    """

    scale: Scale = 1.0

    def line_moment(self, order):
        return factorial(order) * self.scale**order if order % 2 == 0 else 0

    def sample(self, key, dim, shape=()):
        raise NotImplementedError
'''
FLOW = {"dim": 1, "horizon": 4, "init": {"kind": "diagonal", "a": 0.5, "b": 0.3}}


def test_paths_of_plugins_are_relative_to_the_specification(tmp_path):
    (tmp_path / "mine.py").write_text(LAW.format(name="beside"))
    spec = tmp_path / "spec.json"
    spec.write_text(json.dumps({**FLOW, "plugins": ["mine.py"], "law": {"kind": "beside", "scale": 2}}))
    read = read_spec(spec, FlowSpec)
    assert read.law.line_moment(2) == 8
    again = FlowSpec.model_validate(read.model_dump(mode="json"))  # from another folder
    assert again == read and again.plugins == (tmp_path / "mine.py",)


def test_plugins_of_a_command_are_recorded_in_its_specification(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("mesascope.specs._plugins._default_plugins", [])
    (tmp_path / "mine.py").write_text(LAW.format(name="named"))
    assert main(["kinds", "law", "--json", "--plugin", str(tmp_path / "mine.py")]) == 0
    assert "named" in json.loads(capsys.readouterr().out)["families"]["law"]
    assert default_plugins() == ()  # the next command of this process has its own
    set_default_plugins([str(tmp_path / "mine.py")])
    assert FlowSpec.model_validate({**FLOW, "law": "named"}).plugins == (tmp_path / "mine.py",)
    # they are added to those of the specification
    (tmp_path / "other.py").write_text(LAW.format(name="other"))
    for plugins in ([], ["other.py"], ["other.py", "mine.py"]):
        spec = parse_spec({**FLOW, "law": "named", "plugins": plugins}, FlowSpec, folder=tmp_path)
        assert spec.plugins == tuple(tmp_path / name for name in dict.fromkeys([*plugins, "mine.py"]))
        assert FlowSpec.model_validate(spec.model_dump(mode="json")) == spec
    (tmp_path / "other.py").write_text(LAW.format(name="named"))
    with pytest.raises(SpecError, match=r"other\.py and .*mine\.py both declare the law 'named'; rename one"):
        parse_spec({**FLOW, "law": "named", "plugins": ["other.py"]}, FlowSpec, folder=tmp_path)


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("", "--plugin: must be the path of a Python file, got ''"),
        ("a\0b.py", r"--plugin: must be the path of a Python file, got 'a\x00b.py'"),
        (".", "--plugin: . is not a file; give a Python file"),
        ("~/none.py", "none.py: No such file or directory; check the path"),
        ("~nobody-here/x.py", "write the whole path"),
    ],
)
def test_paths_that_cannot_be_read_are_refused(given, told, capsys):
    assert main(["kinds", "law", "--plugin", given]) == 2
    told_line = capsys.readouterr().err
    assert told in told_line and told_line.count("\n") == 1


def test_a_path_may_start_at_the_home_folder(tmp_path, monkeypatch):
    monkeypatch.setattr("mesascope.specs._plugins._default_plugins", [])
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "mine.py").write_text(LAW.format(name="homely"))
    assert main(["kinds", "law", "--plugin", "~/mine.py"]) == 0
    spec = parse_spec({**FLOW, "law": "homely", "plugins": ["~/mine.py"]}, FlowSpec)
    assert spec.plugins == (tmp_path / "mine.py",)


@pytest.mark.parametrize(
    ("source", "told"),
    [
        (None, r"plugins\[0\]: cannot read .*mine\.py: No such file or directory; check the path"),
        ("1 / 0", r"plugins\[0\]: .*mine\.py:1: ZeroDivisionError: division by zero"),
        ("import sys; sys.exit(0)", r"mine\.py:1: ends the program; remove its call of exit"),
        ("class Own(BaseException): pass\nraise Own('a')", r"mine\.py:2: Own: a"),
        ("import asyncio\nraise asyncio.CancelledError", r"mine\.py:2: CancelledError"),
        (
            "import sys\nclass Own(Exception): __str__ = lambda self: sys.exit(0)\nraise Own",
            r"mine\.py:3: Own: its message cannot be made \(SystemExit\)",
        ),
        (
            LAW.format(name="twice") + LAW.format(name="twice"),
            r"mine\.py:\d+: the law 'twice' is declared twice; rename one",
        ),
        (
            "class Own(Exception): __str__ = None\nraise Own",
            r"mine\.py:2: Own: its message cannot be made \(TypeError\)",
        ),
        (LAW.format(name="My law"), r"'My law' is not a name of a kind; use lower-case words joined by -"),
        (LAW.replace('"{name}"', "1"), r"1 is not a name of a kind; write @kind\(\"name\"\) above the class"),
        ("def", r"plugins\[0\]: .*mine\.py:1: SyntaxError"),
        (LAW.format(name="gaussian"), r"the law 'gaussian' is mesascope's Gaussian; choose another name"),
        (
            LAW.format(name="x").replace("def sample", "def draw"),
            "TypeError: Law lacks sample; write it in the class",
        ),
        (
            LAW.format(name="gaussian").replace("class Law", "class Gaussian"),
            r"the law 'gaussian' is mesascope's Gaussian; choose another name",
        ),
    ],
)
def test_unusable_files_are_refused(tmp_path, source, told):
    if source is not None:
        (tmp_path / "mine.py").write_text(source)
    with pytest.raises(SpecError, match=told):
        parse_spec({**FLOW, "plugins": [str(tmp_path / "mine.py")], "law": "gaussian"}, FlowSpec)


def test_a_class_without_decorator_gives_an_error_with_the_fix():
    from mesascope.processes import SequenceProcess

    class Undecorated(SequenceProcess):
        dim: int

        def sample(self, key, horizon, batch):
            raise NotImplementedError

    with pytest.raises(TypeError, match=r"Undecorated has no fields yet; write @component, or @kind\(…\)"):
        Undecorated(dim=2)
    with pytest.raises(TypeError, match="component: decorates classes, got "):
        component(lambda: 1)


def test_the_last_version_of_a_file_that_is_read_counts(tmp_path):
    file = tmp_path / "mine.py"
    for factor in (1, 2, 1):  # the third time, the content is known
        file.write_text(
            LAW.format(name="changing").replace("factorial(order) *", f"{factor} * factorial(order) *")
        )
        spec = FlowSpec.model_validate({**FLOW, "plugins": [str(file)], "law": "changing"})
        assert spec.law.line_moment(0) == factor


def test_two_files_with_one_kind_are_refused(tmp_path):
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(LAW.format(name="mine") + f"# {name}")
    with pytest.raises(
        SpecError, match=r"plugins\[1\]: .*a\.py and .*b\.py both declare the law 'mine'; rename one"
    ):
        parse_spec(
            {**FLOW, "plugins": [str(tmp_path / "a.py"), str(tmp_path / "b.py")], "law": "mine"}, FlowSpec
        )


@pytest.mark.parametrize("error", ["1 / 0", "raise KeyboardInterrupt"])
def test_a_file_that_fails_leaves_nothing(tmp_path, error):
    file = tmp_path / "mine.py"
    file.write_text(LAW.format(name="half") + error)
    for _ in range(2):  # also when it is tried again
        with pytest.raises(KeyboardInterrupt if "raise" in error else ValueError):
            load_plugin(file)
        assert "half" not in known_kinds("law")
    file.write_text(LAW.format(name="half").replace("class Law", "class Renamed"))
    load_plugin(file)
    assert known_kinds("law")["half"].__name__ == "Renamed"


def test_a_file_that_changes_the_folder_changes_no_other_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "away.py").write_text("import os; os.chdir('/')\n" + LAW.format(name="away"))
    load_plugin(Path("away.py"))
    assert Path.cwd() == tmp_path and "away" in known_kinds("law")


def test_threads_wait_for_a_file_that_another_one_loads(tmp_path):
    file = tmp_path / "slow.py"
    file.write_text("import time; time.sleep(0.3)\n" + LAW.format(name="slow"))
    with ThreadPoolExecutor(2) as pool:
        spec = {**FLOW, "plugins": [str(file)], "law": "slow"}
        laws = [one.law.kind for one in pool.map(lambda _: FlowSpec.model_validate(spec), range(2))]
    assert laws == ["slow", "slow"]


def test_a_parameter_without_a_type_is_refused():
    def gaussian(width, hidden, *, key):
        raise AssertionError

    with pytest.raises(TypeError, match=r"gaussian: parameter hidden has no type; write e\.g\. hidden: Size"):
        kind_of_function("untyped", gaussian, LayerKind, ("width", "key"))


def test_two_files_of_a_command_with_one_kind_are_refused(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("mesascope.specs._plugins._default_plugins", [])
    for name in ("a.py", "b.py"):
        (tmp_path / name).write_text(LAW.format(name="mine") + f"# {name}")
    options = [part for name in ("a.py", "b.py") for part in ("--plugin", str(tmp_path / name))]
    assert main(["kinds", "law", *options]) == 2
    assert "both declare the law 'mine'; rename one" in capsys.readouterr().err
