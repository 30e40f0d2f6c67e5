"""What the README shows is true."""

import re
import subprocess
import sys
from pathlib import Path

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_example_runs_and_says_what_the_text_says():
    code = re.search(r"<!-- example -->\n```python\n(.*?)```", README, re.S).group(1)
    assert len([line for line in code.splitlines() if line.strip()]) <= 15
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loss, *flow, limit = done.stdout.strip().splitlines()
    assert float(loss) > 0
    assert "converged" in flow[0] and "0.19190509" in flow[0]
    assert float(limit) == 0.19190508852558863


def test_the_specification_is_one(tmp_path):
    text = re.search(r"```toml\n(.*?)```", README, re.S).group(1)
    (tmp_path / "spec.toml").write_text(text)
    command = [sys.executable, "-m", "mesascope", "flow", str(tmp_path / "spec.toml"), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert '"converged": true' in done.stdout


def test_the_loss_specification_is_one(tmp_path):
    text = re.search(r"```json\n(.*?)```", README, re.S).group(1)
    (tmp_path / "spec.json").write_text(text)
    command = [sys.executable, "-m", "mesascope", "loss", str(tmp_path / "spec.json"), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert '"loss"' in done.stdout


def test_links_and_pictures_exist():
    root = Path(__file__).parents[1]
    for target in re.findall(r"\]\((?!http)([^)#]+)\)", README):
        assert (root / target).exists(), target
