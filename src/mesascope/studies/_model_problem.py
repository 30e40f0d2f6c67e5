"""Any model on any process: the part that its loss and its flow share."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Self

from pydantic import model_validator

from mesascope.models import ModelKind
from mesascope.objectives import Engine, EngineField
from mesascope.specs import Seed, SpecError, error_path, one_of

from ._data import DataSpec, Process, of_length
from ._identify_models import CheckpointSpec

if TYPE_CHECKING:
    from mesascope.core import Estimate
    from mesascope.objectives import Objective


class ModelProblem(NamedTuple):
    """The Python objects of a specification.

    Attributes:
        model, process, task, engine: arguments of `population_loss`.
        test_process: the process on which the loss is computed too; None if there is none.
    """

    model: Any
    process: Any
    task: Any
    engine: Engine | None
    test_process: Any

    @property
    def objective(self) -> "Objective":
        """The loss, a function of the model."""
        return self._objective_on(self.process)

    @property
    def test_objective(self) -> "Objective | None":
        """The loss on the test process; None if there is none."""
        return None if self.test_process is None else self._objective_on(self.test_process)

    def _objective_on(self, process: Any) -> "Objective":
        from mesascope.objectives import objective_of

        return objective_of(self.model, process, self.task, self.engine)


class ModelProblemSpec(DataSpec):
    """A model and its data, on which its loss is exact or sampled.

    Attributes:
        model: the model with its initial weights, or a checkpoint of a training run.
        seed: seed of the initial weights, unless the model has its own.
        engine: how the expectation is computed; by default exactly: "enumeration" for symbols and training sets, else
            "exact-moments".
        test_process: another process of such data, on which the loss is computed too, such as the one from whose tasks a pool
            was drawn.
    """

    model: Annotated[ModelKind | CheckpointSpec, *one_of("model", "given-model")]
    seed: Seed = 0
    engine: EngineField | None = None
    test_process: Annotated[Process, *one_of("process")] | None = None

    @model_validator(mode="after")
    def _parts_fit(self) -> Self:
        if not isinstance(self.model, ModelKind | CheckpointSpec):
            raise SpecError(
                f"'{self.model.kind}' has no weights that are known here; give a checkpoint, or a model of mesascope",
                "model",
                "kind",
            )
        self.check_model(self.model)
        if self.test_process is not None:
            given = (self.test_process.data, self.test_process.dim)
            if given != (self.source.data, self.source.dim):
                raise SpecError(
                    f"draws {given[0]} of dimension {given[1]}, but the model reads {self.source.data} of dimension "
                    f"{self.source.dim}; choose a process of the same data",
                    "test_process",
                )
        return self

    def build(self) -> ModelProblem:
        """Return the objects; the engine has accepted them.

        Raises:
            SpecError: numbers do not fit, or the engine cannot treat the model on these data.
            ValueError: 64-bit mode is off.
        """
        import jax

        from mesascope.core import require_x64

        require_x64(type(self).__name__)
        process, task = self.build_data()
        with error_path("model"):
            model = _in_double_precision(self.model.build(self.shape, self.seed))
        test = None if self.test_process is None else of_length(self.test_process, self.shape.length)
        problem = ModelProblem(model, process, task, self.engine, test)
        with error_path("engine"):
            jax.eval_shape(problem.objective, model)
        with error_path("test_process"):
            if (objective := problem.test_objective) is not None:
                jax.eval_shape(objective, model)
        return problem


def names_any_model(fields: Any) -> bool:
    """Whether a file specifies any model: it has a field of a model, of prompts, or a task, which only these have."""
    return isinstance(fields, Mapping) and not {"model", "examples", "task"}.isdisjoint(fields)


def _in_double_precision(model: Any) -> Any:
    """The model with weights in float64 or complex128: a checkpoint may be in single precision."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp

    return jax.tree.map(
        lambda leaf: (
            leaf.astype(jnp.promote_types(leaf.dtype, jnp.float64)) if eqx.is_inexact_array(leaf) else leaf
        ),
        model,
    )


def test_fields(problem: ModelProblem, model: Any) -> dict[str, float | None]:
    """The fields of a result that say what the loss of a model on the test process is; None without one."""
    objective = problem.test_objective
    if objective is None:
        return {"test_loss": None, "test_standard_error": None}
    found = loss_of(objective, model)
    return {"test_loss": float(found.value), "test_standard_error": float(found.standard_error)}


def loss_of(objective: "Objective", model: Any) -> "Estimate":
    """The loss of a model, compiled."""
    import equinox as eqx

    found: Estimate = eqx.filter_jit(objective)(model)
    return found


def named_weights(model: Any) -> dict[str, Any]:
    """Name → real array of weights, such as `network.layers[0].w_kq`; complex weights are two, `….real` and `….imag`."""
    import equinox as eqx
    import jax
    import numpy as np

    leaves, _ = jax.tree_util.tree_flatten_with_path(eqx.filter(model, eqx.is_inexact_array))
    found: dict[str, Any] = {}
    for path, leaf in leaves:
        name, values = jax.tree_util.keystr(path).lstrip("."), np.asarray(leaf)
        if np.iscomplexobj(values):
            found |= {f"{name}.real": values.real, f"{name}.imag": values.imag}
        else:
            found[name] = values
    return found
