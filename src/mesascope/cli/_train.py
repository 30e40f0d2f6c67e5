"""`mesascope train`."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from tyro.conf import FlagCreatePairsOff, Positional, arg

from ._output import (
    DONE,
    FAILED,
    INTERRUPTED,
    InputError,
    compute_in_64_bits,
    in_file,
    print_json,
    progress,
    results,
    say,
)

if TYPE_CHECKING:
    from mesascope.studies import TrainingRun, TrainResult


@dataclass(frozen=True)
class Train:
    """Train a model on freshly drawn sequences or prompts.

    Fields of SPEC:

    - process: a table with a kind and its parameters.
      Sequences: diagonal-unitary (default; law and dim stand beside process),
      orthogonal-ar (law, dim, noise, basis), rotation-ar (law, dim, start),
      linear-ar (law, state_dim, spectrum, noise, observed, unstable),
      nonlinear-ar (law, dim, hidden, gain, noise),
      markov-tree (states, alpha, parents, seed).
      Prompts: linear-regression (dim, law, covariance, prior, noise, sparsity),
      nonlinear-regression (dim, target, law, noise),
      orthonormal-features (features, dim, probabilities, law)
    - horizon for sequences, examples for prompts
    - weights, if not "every" for sequences and "last" for prompts: a table or list
    - model: a table with a kind.
      Sequences: linear-attention (init, rho),
      multi-head-linear-attention (heads, scale, rho, seed),
      factored-linear-attention (heads, scale, key_size, value_size, rho, seed),
      linear-transformer (layers, heads, scale, rho, seed),
      factored-linear-transformer (and key_size, value_size),
      mesa-transformer (layers, heads, scale, key_size, value_size,
      regularization, seed), transformer (width, layers, heads, seed),
      token-transformer (the same, for markov-tree).
      Prompts: prompt-linear-transformer (layers, heads, scale, rho, context, seed),
      looped-linear-transformer (and loops), prompt-transformer (as transformer)
    - optimizer, if not "adam": a name or a table with method (adam, adamw, lion,
      sgd, momentum), learning_rate, schedule (constant, cosine, linear), warmup,
      clip, weight_decay
    - steps, batch, seed, precision ("float32", "float64", "bfloat16"), average,
      held_out, record_every, evaluate_every, checkpoint_every
    """

    spec: Annotated[Positional[str], arg(metavar="SPEC")]
    """TOML or JSON file with process, horizon or examples, model; - reads standard input."""
    out: Annotated[str | None, arg(metavar="DIR", help_behavior_hint="")] = None
    """Folder of the checkpoints, by default runs/NAME for NAME.toml; the same command resumes."""
    export: Annotated[str | None, arg(metavar="FILE", help_behavior_hint="")] = None
    """Also write the trained weights as safetensors."""
    json: FlagCreatePairsOff[bool] = False
    """Print one JSON object: loss, loss_standard_error, steps, checkpoint, result, message,
    losses, evaluations."""

    def run(self) -> int:
        """Train and print; return the exit status."""
        from mesascope.studies import TrainResult, TrainSpec, read_spec

        folder = self._folder()
        with in_file(self.spec):
            spec = read_spec(self.spec, TrainSpec)
            compute_in_64_bits()
            run = spec.build()
        training = _train(run, folder)
        result = TrainResult.of(training)
        if self.export and result.succeeded:
            from mesascope.dynamics import export_safetensors

            export_safetensors(self.export, training.model)
        if self.json:
            print_json(result.model_dump())
        else:
            _print(result)
        if result.succeeded:
            return DONE
        if result.result == "interrupted":
            say(f"mesascope train: interrupted; {result.checkpoint} is kept, and the same command resumes")
            return INTERRUPTED
        say(
            f"mesascope train: {result.result}: {result.message}; the last good checkpoint is {result.checkpoint}"
        )
        return FAILED

    def _folder(self) -> Path:
        if self.out is not None:
            return Path(self.out)
        if self.spec == "-":
            raise InputError(
                "standard input has no name to call the folder of the checkpoints by; give --out DIR"
            )
        return Path("runs", Path(self.spec).stem)


def _train(run: "TrainingRun", folder: Path) -> Any:
    """Train, with a progress bar on a terminal."""
    from mesascope.dynamics import ProgressBar

    console = progress()
    if console.quiet:
        return run.train(folder)
    with ProgressBar(console) as bar:
        return run.train(folder, bar)


def _print(result: "TrainResult") -> None:
    console = results()
    console.print(result.result, style="bold green" if result.succeeded else "bold red", end="")
    console.print(f": {result.message}", markup=False)
    lines = {"steps": str(result.steps), "loss": f"{result.loss:.6g} ± {result.loss_standard_error:.2g}"}
    for name, value in lines.items():
        console.print(f"{name:14}{value}", markup=False)
    print(f"{'checkpoint':14}{result.checkpoint}")  # not through rich: a path must stay on one line
