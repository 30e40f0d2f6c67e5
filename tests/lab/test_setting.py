import json
import re
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest

from mesascope.cli import main
from mesascope.lab._form import field_of, form_of, kind_fields, setting_of
from mesascope.lab._setting import (
    DEFAULT,
    MAX_DIM,
    MAX_HORIZON,
    MAX_START,
    from_query,
    plain_setting,
    read_setting,
    to_python,
    to_query,
    to_toml,
)
from mesascope.lab._sizes import IDENTIFY_TASKS, IDENTIFY_TOKENS, SEQUENCES, SHOWN_SEQUENCES, SHOWN_TOKENS
from mesascope.lab._training_panel import _rate, _whole
from mesascope.specs import known_kinds, load_plugin
from mesascope.studies import SpecError

GAUSSIAN = {"kind": "gaussian", "scale": 1.0}
LAW_TABLES = {
    "gaussian": {"kind": "gaussian", "scale": "1/3"},
    "sparse": {"kind": "sparse", "scale": 2},
    "constant": {"kind": "constant", "value": [1, "1/2", -0.25]},
    "rademacher": {"kind": "rademacher", "scale": 0.5},
    "uniform": {"kind": "uniform", "scale": 3},
    "studentt": {"kind": "studentt", "df": 9.5, "scale": 2.0},
    "mixture": {
        "kind": "mixture",
        "parts": [
            {"probability": "1/3", "law": {"kind": "studentt", "df": 8, "scale": 1.0}},
            {"probability": "1/3", "law": {"kind": "constant", "value": [1, 2, 3]}},
            {
                "probability": "1/3",
                "law": {"kind": "mixture", "parts": [{"probability": 1, "law": GAUSSIAN}]},
            },
        ],
    },
    "empirical": {"kind": "empirical", "samples": [[1.0, 2.0, 3.0], [0.5, 0.0, -1.0]], "joint": True},
    "moments": {"kind": "moments", "moments": [1, 0, 1, 0, 3, 0, 15]},
}
MATRICES = {"w_kq": [[0.5] * 6] * 6, "w_pv": [[0.0, 1, 2, 3, 4, 5]] * 3}
SETTINGS = [
    DEFAULT,
    *(
        {"dim": 3, "horizon": 12, "law": law, "init": {"kind": "gaussian", "scale": 0.1, "seed": 0}}
        for law in LAW_TABLES.values()
    ),
    {
        **DEFAULT,
        "weights": {"99": 1},
        "rho": "1",
        "mask": "off-diagonal",
        "solver": "kvaerno5",
        "until": 12.5,
    },
    {**DEFAULT, "horizon": 5, "weights": [1, "1/2", 0], "rho": "t", "tolerance": 1e-6, "max_steps": 500},
    {
        "dim": 3,
        "horizon": 7,
        "law": GAUSSIAN,
        "init": {"kind": "explicit", **MATRICES},
        "weights": {"2": "1/7", "5": 2},
    },
    {**DEFAULT, "init": {"kind": "gaussian", "scale": 1, "seed": 7}},
]


@pytest.mark.parametrize("data", SETTINGS)
def test_address_file_and_form_give_the_setting_back(data):
    setting = read_setting(data)
    assert from_query(to_query(setting)) == setting
    assert read_setting(tomllib.loads(to_toml(setting))) == setting
    assert read_setting(plain_setting(setting)) == setting
    again = setting_of(form_of(setting))
    # a list of all weights becomes a table of them; in the loss they are the same
    assert plain_setting(again) | {"weights": None} == plain_setting(setting) | {"weights": None}
    if isinstance(setting.weights, dict | None):
        assert again == setting


def test_every_law_can_be_chosen_and_its_first_values_are_good():
    assert set(known_kinds("law")) >= set(LAW_TABLES)
    form = form_of(read_setting(DEFAULT))
    for kind in LAW_TABLES:
        assert setting_of({**form, "law.kind": kind}).law.kind == kind


PLUGIN = '''
"""A law whose fields have types that the form knows, and one that it does not."""

import mesascope as ms
from mesascope.processes import IdenticalLaw
from mesascope.specs import Matrix, Numbers, Scale


@ms.kind("of-the-form", table={"by": [1, "a"]}, matrix=[[1, 2]])
class OfTheForm(IdenticalLaw):
    """A law of many fields.

    Args:
        scale: the width $b > 0$; of no use.
        table: a table of anything.
        matrix: any matrix.
        several: any numbers.
        flag: whether to flip.
    """

    scale: Scale = 0.25
    table: dict = None
    matrix: Matrix = ((1, 2),)
    several: Numbers = (1, "1/2")
    flag: bool = False

    def line_moment(self, order):
        return 1 if order % 2 == 0 else 0

    def sample(self, key, dim, shape=()):
        raise NotImplementedError
'''


def test_fields_of_a_law_of_ones_own_are_edited_by_their_types(tmp_path):
    file = tmp_path / "of_the_form.py"
    file.write_text(PLUGIN)
    load_plugin(file)
    fields = {field.name: field for field in kind_fields("law", "of-the-form")}
    assert [field.label for field in fields.values()] == [
        *("width b > 0", "a table of anything", "any matrix", "any numbers", "whether to flip")
    ]
    form = form_of(read_setting({**DEFAULT, "law": {"kind": "of-the-form"}}))
    assert form["law.scale"] == "0.25" and fields["law.scale"].editor.slider(0.25) == (
        0.025,
        0.75,
        0.0125,
    )
    assert (form["law.several"], form["law.flag"]) == ("1, 1/2", "false")
    given = {"law.table": '{"x": [1, "b"]}', "law.matrix": "1 2\n3 4", "law.flag": "true"}
    law = setting_of(form | given).law
    assert (law.table, law.matrix, law.flag) == ({"x": [1, "b"]}, ((1, 2), (3, 4)), True)
    again = form_of(setting_of(form | given))
    assert again["law.table"] == given["law.table"] and again["law.matrix"] == "1.0, 2.0\n3.0, 4.0"
    with pytest.raises(SpecError) as raised:
        setting_of(form | {"law.matrix": "1 2\n3"})
    assert field_of(raised.value, form) == "law.matrix"
    assert from_query(to_query(setting_of(form | given))) == setting_of(form | given)


def test_the_last_term_stays_the_last_when_the_horizon_moves():
    form = form_of(read_setting({**DEFAULT, "weights": {"99": 1}}))
    assert form["objective"] == "last"
    assert setting_of({**form, "horizon": "40"}).weights == {39: 1}


def test_a_file_from_the_page_runs_on_the_command_line(tmp_path, capsys):
    # of the shape of the other tests of the lab, whose programs are compiled
    data = {
        "dim": 2,
        "horizon": 6,
        "law": GAUSSIAN,
        "init": {"kind": "diagonal", "a": 0.5, "b": 0.2},
        "until": 0.5,
    }
    path = tmp_path / "spec.toml"
    path.write_text(to_toml(read_setting(data)))
    status = main(["flow", str(path), "--json"])
    out, err = capsys.readouterr()
    assert (status, err) == (0, "")
    assert json.loads(out)["time"] == 0.5


def test_the_program_asks_for_what_the_page_was_asked():
    spec = read_setting(DEFAULT)
    train = {"samples": 64, "rate": 1e-4, "steps": 40, "seed": 0}
    program = to_python(spec, train, {"learners": ["ridge"], "tasks": 400})
    calls = {"spec": spec, "view": lambda spec, **asked: asked}
    (line,) = re.findall(r"^shown = (view\(.*?^\))", program, re.M | re.S)
    assert eval(line, calls) == {"train": train, "identify": {"learners": ["ridge"], "tasks": 400}}
    compile(program, "view.py", "exec")
    assert "shown = view(spec)\n" in to_python(spec)


NUMBERS = ("law.scale", "dim", "horizon", "init.a", "init.b", "until", "tolerance", "max_steps")
NEVER = (
    "NaN",
    "nan",
    "inf",
    "-Infinity",
    "1e999",
    "+1e99999999",
    "9" * 400,
    "one",
    "1/0",
    "[1]",
    "{}",
    "1 2",
    "²",
    "true",
)
BAD = [
    *((field, text) for field in NUMBERS for text in NEVER),
    *((field, "") for field in NUMBERS[:5]),  # the others have a default
    *(("law.scale", text) for text in ("0", "-1", "1e308", "1e-320")),
    *(("dim", text) for text in ("0", "2.5", "5.0", "25", "100000", "1e9")),
    *(("horizon", text) for text in ("2", "10000000", "1e5")),
    *(("until", text) for text in ("soon", "0", "-1")),
    *(("tolerance", text) for text in ("2", "0", "1e-12")),
    *((field, text) for field in ("init.a", "init.b") for text in ("1e308", "-1000001", "10000001/10")),
    *(("max_steps", text) for text in ("0", "1000000000")),
]


def test_what_has_a_default_may_be_left_out():
    form = form_of(read_setting(DEFAULT)) | {"until": " ", "tolerance": "", "max_steps": ""}
    assert setting_of(form) == read_setting(DEFAULT)


def test_a_field_that_would_take_minutes_to_read_is_refused():
    form = form_of(read_setting(DEFAULT)) | {"law.kind": "empirical", "law.samples": "1 " * 150_000}
    with pytest.raises(SpecError, match="has 300000 characters, at most 200000") as raised:
        setting_of(form)
    assert field_of(raised.value, form) == "law.samples"


@pytest.mark.parametrize(("field", "text"), BAD)
def test_an_error_is_at_its_field(field, text):
    form = form_of(read_setting(DEFAULT)) | {field: text}
    with pytest.raises(SpecError) as raised:
        setting_of(form)
    assert field_of(raised.value, form) == field


@pytest.mark.parametrize(
    ("choice", "field", "text"),
    [
        ({"law.kind": "constant"}, "law.value", "1, x"),
        ({"law.kind": "studentt"}, "law.df", "no"),
        ({"law.kind": "mixture"}, "law.parts", "0.5 gaussian 1"),
        ({"law.kind": "mixture"}, "law.parts", "0.5 gauss scale=1"),
        ({"law.kind": "mixture"}, "law.parts", ""),
        ({"law.kind": "mixture"}, "law.parts", "1 {"),
        ({"law.kind": "empirical"}, "law.samples", "1, 2\n3"),
        ({"law.kind": "moments"}, "law.moments", "1, 0, y"),
        ({"objective": "given"}, "weights", "2: 1, 3"),
        ({"objective": "given"}, "weights", "2: 1, 200: 1"),
        ({"objective": "given"}, "weights", "2: 1, 2: 3"),
        ({"objective": "given"}, "weights", ""),
        ({"init.kind": "gaussian"}, "init.scale", "0"),
        ({"init.kind": "gaussian"}, "init.seed", "-1"),
        ({"init.kind": "explicit", "init.w_pv": "1"}, "init.w_kq", "1 2\n3"),
        ({"init.kind": "explicit", "dim": "1", "init.w_kq": "0 1\n1 0"}, "init.w_pv", ""),
        ({"init.kind": "explicit", "dim": "1", "init.w_kq": "0 1\n1 0"}, "init.w_pv", "1 NaN"),
        ({"init.kind": "explicit", "dim": "1", "init.w_kq": "0 1\n1 0"}, "init.w_pv", "1 2 3"),
        ({"init.kind": "explicit", "dim": "1", "init.w_pv": "0 1"}, "init.w_kq", ""),
        ({"init.kind": "gaussian"}, "init.scale", "inf"),
        ({"init.kind": "gaussian"}, "init.scale", "1e7"),
        ({"init.kind": "explicit", "dim": "1", "init.w_pv": "0 1"}, "init.w_kq", "0 1\n1e7 0"),
        ({"init.kind": "gaussian"}, "init.seed", "99999999999"),
        ({"law.kind": "empirical"}, "law.samples", ""),
        ({"law.kind": "empirical"}, "law.samples", "1 NaN"),
        ({"law.kind": "moments"}, "law.moments", "1, 0, 1, 0, 3, 0, 1e400"),
        ({"law.kind": "constant"}, "law.value", "1e60"),
        ({"objective": "given"}, "weights", "2: NaN"),
    ],
)
def test_an_error_of_a_field_of_another_choice_is_at_that_field(choice, field, text):
    form = form_of(read_setting(DEFAULT)) | choice | {field: text}
    with pytest.raises(SpecError) as raised:
        setting_of(form)
    assert field_of(raised.value, form) == field


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("dim=25", "dim: must be at most 24 here, got 25"),
        ("horizon=10000000", "horizon: must be at most 1000000"),
        ("method=descent&lr=1&steps=2", "method: the lab follows the gradient flow"),
        ("engine.kind=enumeration", "engine"),
        ("law.kind=empirical&law.file=x.npy", "law.file: files are not read here"),
        (
            'plugins=["/tmp/x.py"]',
            "plugins: are not loaded here; open the page by mesascope lab --plugin FILE",
        ),
        ("plugins=x.py", "plugins: are not loaded here"),
        (
            "law.kind=mixture&law.parts=" + '[{"probability":1,"law":{"kind":"empirical","file":"x.npy"}}]',
            "law.file",
        ),
        ("law.kind=moments&law.moments=1,0,1,0,3,0,15", "law.moments: must be a list of numbers, got '1,0,"),
        ("law.kind=moments&law.moments=1,0,1,0,3,0,15", "write e.g. [1, 0.5]"),
        ("dim=3&dim=4", "dim: is given twice"),
        ("law=1&law.kind=gaussian", "law: is given both as a value and as a table"),
        ("colour=red", "unknown field 'colour'"),
        ("x=" + "1" * 30_000, "longer than"),
        ("&".join(f"x{n}=1" for n in range(1200)), "more than 1000 fields"),
        ("dim=" + "[" * 5000, "dim"),
        ("a." * 900 + "b=1", "a field in more than 20 tables"),
    ],
)
def test_an_address_that_cannot_be_shown_says_why(query, message):
    given = {name.partition("=")[0].partition(".")[0] for name in query.split("&")}
    rest = to_query(read_setting({**DEFAULT, "dim": 2, "horizon": 5}))
    kept = [pair for pair in rest.split("&") if pair.partition("=")[0].partition(".")[0] not in given]
    with pytest.raises(SpecError) as raised:
        from_query("&".join([query, *kept]))
    assert message in str(raised.value)
    assert "\n" not in str(raised.value)


@pytest.mark.parametrize("query", ["dim=999", "dim=5&horizon=100&law.kind=gaussian"])
def test_a_part_of_an_address_names_what_it_lacks_and_shows_a_whole_one(query):
    with pytest.raises(
        SpecError, match=r"the address lacks .*init; it must contain the whole setting"
    ) as raised:
        from_query(query)
    assert from_query(raised.value.what.partition("?")[2]) == read_setting(DEFAULT)


def test_an_empty_address_is_the_figure_of_the_paper():
    assert from_query("") == read_setting(DEFAULT)


def test_its_page_tells_the_sizes_that_it_has():
    page = " ".join((Path(__file__).parents[2] / "docs" / "lab.md").read_text(encoding="utf-8").split())
    assert MAX_HORIZON == MAX_START == 10**6
    for text in (
        f"Dimensions up to {MAX_DIM}, horizons and weights of the start up to 10⁶;",
        f"on {SEQUENCES} sequences of at most {SHOWN_TOKENS + 1} tokens",
        f"`identify` uses {IDENTIFY_TASKS} sequences of at most {IDENTIFY_TOKENS}.",
    ):
        assert text in page
    assert (SHOWN_SEQUENCES, "four sequences" in page) == (4, True)
    law, dim, horizon = (DEFAULT[name] for name in ("law", "dim", "horizon"))
    assert f"The page starts with the Gaussian law, d = {dim}, T = {horizon}." in page
    assert law == {"kind": "gaussian", "scale": 1.0}


@pytest.mark.parametrize("text", ["", "x", "٣", "3.0", "1_0", "007", '" 3 "', "true", "9" * 5000, "1e400"])
def test_numbers_beside_the_form_are_those_of_a_specification(text):
    field = SimpleNamespace(value=text)
    assert _whole(field, 1, 100) is None
    assert field.error == "an integer from 1 to 100"
    if text not in ("", "3.0", "007", '" 3 "'):  # left out, or a number that is no integer
        assert _rate(field, {}, 1) is None
        assert field.error.startswith("a number greater than 0")


@pytest.mark.parametrize("text", ["3", " 3 ", "3\n"])  # blanks around a number mean nothing, as in a file
def test_blanks_around_numbers_are_left_out(text):
    field = SimpleNamespace(value=text)
    assert (_whole(field, 1, 100), field.error, _rate(field, {}, 1)) == (3, None, 3.0)
    assert setting_of({**form_of(read_setting(DEFAULT)), "dim": text}).dim == 3


@pytest.mark.parametrize("name", ["dim", "law.scale", "until", "max_steps"])
def test_digits_of_other_scripts_are_no_numbers(name):
    with pytest.raises(SpecError, match=r"got '٣'|'٣' is not") as raised:
        setting_of({**form_of(read_setting(DEFAULT)), name: "٣"})
    assert raised.value.place == name
