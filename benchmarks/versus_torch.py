"""Training steps of ours and of eager PyTorch in turns, on as many cores as are said: `versus_torch.py KIND CORES`.

Prints one JSON object with the time per step of every program. Both sides draw fresh data, compute the loss and its gradient in
float32 and take an Adam step. They run the same formula: from equal weights and data, both must give the same loss.
"""

import json
import os
import statistics
import sys

KIND, CORES = sys.argv[1], int(sys.argv[2])
os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:CORES])  # before jax and torch start their threads

import jax  # noqa: E402

jax.config.update("jax_num_cpu_devices", CORES)  # as `mesascope train` does

import jax.numpy as jnp  # noqa: E402
import torch  # noqa: E402
from measuring import interleaved  # noqa: E402
from torch_models import KINDS  # noqa: E402

from mesascope.core import named_key  # noqa: E402
from mesascope.dynamics import Optimizer  # noqa: E402
from mesascope.dynamics._devices import devices_to_share, on_one_device  # noqa: E402
from mesascope.dynamics._training_steps import TrainingSteps, advance  # noqa: E402
from mesascope.objectives import sample_losses, task_length  # noqa: E402

torch.set_num_threads(CORES)
DEVICE = "cuda" if jax.default_backend() == "gpu" and torch.cuda.is_available() else "cpu"
LEARNING_RATE = 1e-3


def main():
    ours, baseline = KINDS[KIND]
    model, process, task, batch = ours()
    theirs = {name: make(model, DEVICE) for name, make in baseline.items()}
    for name in list(theirs):
        try:
            check_equal(model, process, task, theirs[name])
        except RuntimeError as error:  # torch.compile needs a C++ compiler
            print(f"without {name}: {error}", file=sys.stderr)
            del theirs[name]
    functions = {"mesascope": our_steps(model, process, task, batch, count_of(KIND))}
    for name, program in theirs.items():
        functions[name] = their_steps(program, batch, count_of(KIND))
    times = interleaved(functions, rounds=15)
    per_step = {name: [t / count_of(KIND) for t in one] for name, one in times.items()}
    medians = {name: statistics.median(one) for name, one in per_step.items()}
    minima = {name: min(one) for name, one in per_step.items()}
    rates = ceilings()
    flops, moved = work_of_the_gradient(model, process, task, batch)
    fractions = {
        "of_matrix_rate": flops / minima["mesascope"] / rates["flops"],
        "of_bandwidth": moved / minima["mesascope"] / rates["bytes"],
    }
    print(json.dumps({"device": DEVICE, "medians": medians, "minima": minima, **fractions}))


def count_of(kind):
    """Steps in one turn: long enough for the clock, short enough for many turns."""
    return {"linear": 50, "transformer": 4, "prompts": 20}[kind]


def steps_of(process, task, batch):
    optimizer = Optimizer("adam", LEARNING_RATE).build(1000)
    return TrainingSteps(process, task, optimizer, batch, "float32", None, devices_to_share())


def our_steps(model, process, task, batch, count):
    """The compiled loop that `train` runs between two records."""
    steps = steps_of(process, task, batch)
    carry = [steps.start(model), jnp.zeros(())]
    taken, key = jnp.asarray(0), named_key(0, "train")

    def run():
        moved = advance(steps, model, carry[0], carry[1], key, taken, jnp.asarray(count))
        carry[:] = jax.block_until_ready(on_one_device(moved))

    return run


def their_steps(program, batch, count):
    optimizer = torch.optim.Adam(program.parameters(), LEARNING_RATE)

    def run():
        for _ in range(count):
            loss = program.loss(program.data(batch))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if DEVICE == "cuda":
            torch.cuda.synchronize()

    return run


def check_equal(model, process, task, program):
    sample = process.sample(named_key(1), task_length(task), 32)
    ours = float(jnp.mean(sample_losses(model, sample, task)))
    given = jax.tree.map(lambda x: torch.tensor(jax.device_get(x).tolist(), device=DEVICE), sample)
    theirs = program.loss(given).item()
    assert abs(ours - theirs) < 1e-4 * abs(ours), f"not the same formula: {ours} and {theirs}"


def work_of_the_gradient(model, process, task, batch):
    """Floating-point operations and bytes of the gradient of a whole batch, as the compiler counts them."""
    sample = process.sample(named_key(0), task_length(task), batch)
    gradient = jax.jit(jax.grad(lambda model: jnp.mean(sample_losses(model, sample, task))))
    counted = gradient.lower(model).compile().cost_analysis()
    return counted.get("flops", float("nan")), counted.get("bytes accessed", float("nan"))


def ceilings():
    """What the machine can do: operations per second of a large product, bytes per second of a large sum."""
    n, long = 2048, 2**26
    product = jax.jit(lambda a: a @ a)
    added = jax.jit(lambda a: a + 1)
    square, vector = jnp.ones((n, n)), jnp.ones(long)
    times = interleaved(
        {
            "product": lambda: jax.block_until_ready(product(square)),
            "sum": lambda: jax.block_until_ready(added(vector)),
        },
        rounds=5,
    )
    return {"flops": 2 * n**3 / min(times["product"]), "bytes": 8 * long / min(times["sum"])}


main()
