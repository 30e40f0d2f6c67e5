"""Twenty faults in the core, each of which `make test` has to notice: `make faults` puts in one after the other.

The tests run on a copy of the package with one fault, first those of the room where it is, until one fails. The table goes to
standard output; the exit status is 1 if a fault is not noticed.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]


class Fault(NamedTuple):
    """One change of a file.

    Attributes:
        what: the fault in a few words.
        file: the file, below src/mesascope.
        right: its text, which occurs once.
        wrong: what replaces it.
        rooms: folders and files of tests, the nearest first.
    """

    what: str
    file: str
    right: str
    wrong: str
    rooms: tuple[str, ...]


EXACT, TRAJECTORY = ("objectives",), ("dynamics", "theory")
FAULTS = (
    Fault(
        "sign of the Möbius function",
        "objectives/_partitions.py",
        "(-1) ** (parts - 1)",
        "(-1) ** parts",
        EXACT,
    ),
    Fault(
        "factorial in the Möbius function",
        "objectives/_partitions.py",
        "factorial(parts - 1)",
        "factorial(parts)",
        EXACT,
    ),
    Fault(
        "exponent of the next token",
        "objectives/_counts.py",
        "np.broadcast_arrays(-s - 1, u - a, b - u, s - c)",
        "np.broadcast_arrays(-s, u - a, b - u, s - c)",
        EXACT,
    ),
    Fault(
        "last term of the sum over the context",
        "objectives/_counts.py",
        "(u <= s) & (v <= s)",
        "(u < s) & (v <= s)",
        EXACT,
    ),
    Fault(
        "labels of the conjugated factor",
        "objectives/_plan.py",
        "coefficients[[0, 2, 1, 3]]",
        "coefficients[[0, 1, 2, 3]]",
        EXACT,
    ),
    Fault(
        "factor 2 of the cross term of regression",
        "objectives/_regression.py",
        "-2 * weights @ (lengths * inverse)",
        "-weights @ (lengths * inverse)",
        EXACT,
    ),
    Fault(
        "query counted as an example",
        "objectives/_regression.py",
        "normalizer_inverses(layer.normalizer, lengths + 1)",
        "normalizer_inverses(layer.normalizer, lengths)",
        EXACT,
    ),
    Fault(
        "one degree of freedom of the standard error",
        "objectives/_monte_carlo.py",
        "self.samples**0.5)",
        "self.samples)",
        EXACT,
    ),
    Fault(
        "moments of the uniform law",
        "processes/_uniform.py",
        "/ (order + 1) if order",
        "/ (order + 2) if order",
        ("processes",),
    ),
    Fault(
        "moments of Student's law",
        "processes/_student.py",
        "(2 * i - 1) / (df - 2 * i)",
        "(2 * i - 1) / (df - i)",
        ("processes",),
    ),
    Fault(
        "unnormalized probabilities of a mixture",
        "processes/_mixture.py",
        "(exact(p) / total, law)",
        "(exact(p), law)",
        ("processes",),
    ),
    Fault(
        "sign of a rotation",
        "processes/_orthogonal_ar.py",
        "cosine * two - sine * one",
        "cosine * two + sine * one",
        ("processes",),
    ),
    Fault(
        "normalizer of a context",
        "models/_normalizer.py",
        '"t-1": lambda t: t - 1.0',
        '"t-1": lambda t: t - 2.0',
        ("models",),
    ),
    Fault(
        "conjugate of the keys",
        "models/_linear_attention.py",
        '"...tj,h...j->h...t", embedded.conj(), queries',
        '"...tj,h...j->h...t", embedded, queries',
        ("models",),
    ),
    Fault(
        "number of other coordinates in κ₃",
        "theory/zheng2024/_moments.py",
        "(dim - 1) * exact(law.joint_moment((2, 4), dim))",
        "dim * exact(law.joint_moment((2, 4), dim))",
        ("theory", "dynamics"),
    ),
    Fault(
        "factor 2 in the loss at diagonal weights",
        "theory/zheng2024/_limits.py",
        "- 2 * product * beta",
        "- product * beta",
        ("theory",),
    ),
    Fault(
        "limit of the product",
        "theory/zheng2024/_limits.py",
        "    return beta / alpha\n",
        "    return beta**2 / alpha\n",
        TRAJECTORY,
    ),
    Fault(
        "argument of the stages of Rodas4",
        "dynamics/_rodas4.py",
        "point = y0 + a[i + 1] @ moves",
        "point = y0 - a[i + 1] @ moves",
        ("dynamics",),
    ),
    Fault(
        "order of the momentum's terms",
        "learners/_momentum.py",
        "+ momentum * (now - before)\n\n\n@learner",
        "+ momentum * (before - now)\n\n\n@learner",
        ("learners",),
    ),
    Fault(
        "threshold of the Lasso",
        "learners/_lasso.py",
        "jnp.maximum(size - threshold, 0)",
        "jnp.maximum(size - threshold / 2, 0)",
        ("learners",),
    ),
)


def notice(fault: Fault) -> str | None:
    """Return the first test that fails with the fault; None if all pass."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        path = source / "mesascope" / fault.file
        path.write_text(path.read_text(encoding="utf-8").replace(fault.right, fault.wrong), encoding="utf-8")
        nearest = [str(ROOT / "tests" / room) for room in fault.rooms]
        return _first_failure(source, nearest) or _first_failure(source, [str(ROOT / "tests")])


def _first_failure(source: Path, tests: list[str]) -> str | None:
    quick = ("-p", "no:benchmark", "-p", "no:cacheprovider", "-m", "not slow", "-q", "-x", "-n", "auto")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *quick, *tests],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(source)},
        capture_output=True,
        text=True,
        check=False,
    )
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return failed[0].split(" - ")[0].removeprefix("FAILED ") if failed else None


def main() -> int:
    """Try every fault; print what noticed it."""
    missed = 0
    for fault in FAULTS:
        test = notice(fault)
        missed += test is None
        print(f"{fault.what} ({fault.file}): {test or 'NOT NOTICED'}", flush=True)
    print(f"{len(FAULTS) - missed} of {len(FAULTS)} faults noticed")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
