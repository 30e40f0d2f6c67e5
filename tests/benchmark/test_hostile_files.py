"""Files of a benchmark that are damaged, changed or made to harm: each is refused in one line."""

import hashlib
import json
import re
import shutil

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from mesascope.benchmark import Answer, Answers, Benchmark
from mesascope.cli import main


def damaged(folder, tmp_path, name, text):
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    (copy / name).write_text(text)
    return copy


def changed(folder, tmp_path, name, change):
    content = json.loads((folder / name).read_text())
    change(content)
    return damaged(folder, tmp_path, name, json.dumps(content))


def test_bad_folders_are_refused_in_one_line(folder, tmp_path, capsys):
    answers = tmp_path / "answers.json"

    def refused(*arguments):
        assert main([str(one) for one in arguments]) == 2
        out, err = capsys.readouterr()
        assert out == "" and len(err.splitlines()) == 1
        return err

    assert "is not an empty folder" in refused("benchmark", "write", folder)
    assert "cannot read" in refused("benchmark", "score", tmp_path, answers)
    assert "cannot read" in refused("benchmark", "score", folder, answers)
    assert "it is a folder; `mesascope benchmark answer` makes answers" in refused(
        "benchmark", "score", folder, folder
    )
    assert "it is a folder; name a new file" in refused("benchmark", "answer", folder, "--out", folder)
    assert "give a file of answers" in refused("benchmark", "score", folder)
    assert "is no JSON" in refused(
        "benchmark", "score", damaged(folder, tmp_path, "manifest.json", "{"), answers
    )
    shutil.rmtree(tmp_path / "copy")
    copy = changed(folder, tmp_path, "key.json", lambda key: key["models"].popitem())
    assert "is not the key of this benchmark" in refused("benchmark", "score", copy, answers)
    shutil.rmtree(tmp_path / "copy")
    copy = changed(folder, tmp_path, "manifest.json", lambda content: content.update(format="other"))
    assert "format" in refused("benchmark", "score", copy, answers)
    answers.write_text(json.dumps({"method": "mine", "benchmark": "0", "answers": {}}))
    assert "another benchmark" in refused("benchmark", "score", folder, answers)
    answers.write_text(json.dumps({"method": "mine", "benchmark": Benchmark(folder).id, "answers": {}}))
    assert "no answer to model 0000" in refused("benchmark", "score", folder, answers)
    bad = {"0000": {"verdict": "perhaps"}}
    answers.write_text(json.dumps({"method": "mine", "benchmark": Benchmark(folder).id, "answers": bad}))
    assert "verdict" in refused("benchmark", "score", folder, answers)


def test_a_changed_or_foreign_file_of_a_model_is_refused(folder, tmp_path, entries):
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    benchmark = Benchmark(copy)
    name = next(iter(entries(benchmark, group="construction")))
    path = copy / benchmark.manifest.models[name].file
    save_file({one: 2 * array for one, array in load_file(path).items()}, path)
    with pytest.raises(ValueError, match="was changed after it was written"):
        benchmark.model(name)
    outside = {name: benchmark.manifest.models[name].model_copy(update={"file": "../elsewhere"})}
    benchmark.manifest = benchmark.manifest.model_copy(update={"models": outside})
    with pytest.raises(ValueError, match="outside its folder"):
        benchmark.model(name)


def renewed(folder, tmp_path, name, content):
    """A copy in which a model has another file, or the key another content, and the manifest their digests."""
    copy = tmp_path / "copy"
    shutil.copytree(folder, copy)
    manifest = json.loads((copy / "manifest.json").read_text())
    path = copy / ("key.json" if name is None else manifest["models"][name]["file"])
    path.write_bytes(content)
    holder, field = (manifest, "key") if name is None else (manifest["models"][name], "sha256")
    holder[field] = hashlib.sha256(content).hexdigest()
    (copy / "manifest.json").write_text(json.dumps(manifest))
    return copy


def tensors(header, arrays=b""):
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + arrays


HOSTILE = {
    "empty": (lambda _: b"", "holds no arrays"),
    "cut": (lambda content: content[:100], "holds no arrays"),
    "a length that lies": (lambda content: b"\xff" * 8 + content[8:], "holds no arrays"),
    "no such type": (
        lambda _: tensors({"a": {"dtype": "BF16", "shape": [1], "data_offsets": [0, 2]}}, b"ab"),
        "holds no arrays",
    ),
    "no such size": (
        lambda _: tensors({"a": {"dtype": "F64", "shape": [2**63, 0], "data_offsets": [0, 0]}}),
        "holds no arrays",
    ),
    "another name": (
        lambda content: content.replace(b'"w_pv"', b'"w_pw"'),
        r"must have the shapes .* got .*w_pw",
    ),
    "another shape": (
        lambda content: content.replace(b"[1,1,4,4]", b"[1,1,2,8]"),
        r"got w_kq \(1, 1, 2, 8\)",
    ),
    "integers": (lambda content: content.replace(b"F64", b"I64"), "must be finite numbers in float64"),
    "no weights": (lambda _: tensors({}), "got none"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_a_hostile_file_of_weights_is_refused_in_one_line(folder, tmp_path, capsys, what, entries):
    benchmark, (change, message) = Benchmark(folder), HOSTILE[what]
    name = next(iter(entries(benchmark, architecture="prompt-attention")))
    content = (folder / benchmark.manifest.models[name].file).read_bytes()
    copy = renewed(folder, tmp_path, name, change(content))
    others = {one: Answer(verdict="none") for one in benchmark.names if one != name}
    answers = Answers(method="nearest", benchmark=Benchmark(copy).id, answers=others)
    (tmp_path / "answers.json").write_text(answers.model_dump_json())
    arguments = ["benchmark", "answer", copy, "--out", tmp_path / "answers.json", "--method", "nearest"]
    assert main(list(map(str, arguments))) == 2
    said = capsys.readouterr().err
    assert len(said.splitlines()) == 1 and re.search(message, said), said


def test_the_name_of_a_method_is_text(folder, tmp_path, capsys):
    file = tmp_path / "answers.json"
    answers = {one: Answer(verdict="none") for one in Benchmark(folder).names}
    for name, seen in (
        ("[/nope]", "[/nope]"),
        ("[link=x]y", "[link=x]y"),
        ("\x1b[2J" + "c" * 1000, "\\x1b[2J"),
    ):
        given = Answers(method=name, benchmark=Benchmark(folder).id, answers=answers)
        file.write_text(given.model_dump_json())
        assert main(["benchmark", "score", str(folder), str(file)]) == 0
        shown = capsys.readouterr().out
        assert "\x1b" not in shown and "c" * 300 not in shown.replace("\n", "")
        assert seen in shown
    file.write_text(file.read_text().replace("{", '{"method": "twice", ', 1))
    assert main(["benchmark", "score", str(folder), str(file)]) == 2
    assert "method occurs twice" in capsys.readouterr().err


def test_a_key_that_describes_no_model_of_its_data_is_refused(folder, tmp_path, entries):
    name = next(iter(entries(Benchmark(folder), learner="ridge")))
    key = json.loads((folder / "key.json").read_text())
    model = key["models"][name]["model"]

    def found(**changes):
        key["models"][name]["model"] = model | changes
        shutil.rmtree(tmp_path / "copy", ignore_errors=True)
        return Benchmark(renewed(folder, tmp_path, None, json.dumps(key).encode())).model(name)

    with pytest.raises(ValueError, match=f"key.json: models.{name}: .*unexpected keyword argument 'steps'"):
        found(hyperparameters={"steps": 1})
    small = {"learner": "preconditioned-gradient-descent", "hyperparameters": {"preconditioner": [[1.0]]}}
    with pytest.raises(ValueError, match=r"^PreconditionedGradientDescent: [^\n]*$"):  # what data show
        found(**small).function(np.ones((1, 3, 3)), np.ones((1, 2)))
    with pytest.raises(ValueError, match="must be 1 weights"):
        model = {"kind": "mixture", "parts": [model], "weights": [0.5, 0.5]}
        found()
    with pytest.raises(ValueError, match="unknown decoy 'mine'"):
        model = {"kind": "decoy", "name": "mine"}
        found()


def test_a_manifest_without_models_or_without_their_data_is_refused(folder, tmp_path):
    for change, message in (
        ({"models": {}}, "models"),
        ({"data": {}}, r"models.0000.data: must name data with the setting 'usual'"),
    ):
        with pytest.raises(ValueError, match=message):
            Benchmark(changed(folder, tmp_path, "manifest.json", lambda content, c=change: content.update(c)))
        shutil.rmtree(tmp_path / "copy")
