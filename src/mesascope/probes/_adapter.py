"""A common interface to models of all libraries: functions from contexts to predictions."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

Predictor = Callable[..., np.ndarray]
"""A model as a function of NumPy arrays: contexts, or x and y of prompts, to predictions."""


def as_callable(
    model: Any, *, embed: Callable[[Any], Any] | None = None, readout: Callable[[Any], Any] | None = None
) -> Predictor:
    """Return a model as a function of NumPy arrays that predicts from a context.

    Sequences: contexts (batch, t, d) → predictions of x_{t+1} (batch, d). Prompts: x (batch, n + 1, d) and y (batch, n)
    → the label of the last x, (batch,).

    Args:
        model: one of
            - a model of mesascope, or any function of NumPy or JAX arrays with the shapes above;
            - a `torch.nn.Module` with the shapes above: called in evaluation mode without gradients, in the precision and on
              the device of its weights (its mode is restored afterwards);
            - a causal model with the interface of Hugging Face, together with `embed`: it is called as
              `model(inputs_embeds=embed(…))`, and `readout` maps its `last_hidden_state`, or else its `logits`, at the last
              position to the prediction.
        embed: contexts → embedded tokens (batch, length, width). For modules of torch, it maps tensors to tensors.
        readout: entries at the last position (batch, width) → predictions; by default the identity.

    Raises:
        TypeError: `model` cannot be called, or `readout` is given without `embed`.
    """
    if not callable(model):
        raise TypeError(
            f"model: must be a model, or a function of contexts (batch, t, d), got {type(model).__name__}"
        )
    if embed is None:
        if readout is not None:
            raise TypeError("readout: is used only with embed; remove it, or give embed")
        function = model
    else:
        function = _embedded(model, embed, readout or (lambda entries: entries))
    if _is_torch_module(model):
        return _of_torch([one for one in (model, embed, readout) if _is_torch_module(one)], function)
    return lambda *arrays: np.asarray(function(*arrays))


def import_callable(name: str) -> Any:
    """Return the object `package.module:attribute`.

    Raises:
        ValueError: for a name of another form, or a module without the attribute.
        ModuleNotFoundError: for a package that is not installed.
    """
    module, colon, attribute = name.partition(":")
    if not (colon and attribute and all(part.isidentifier() for part in module.split("."))):
        fix = (
            f"{module.removesuffix('.py')}:{attribute}"
            if module.endswith(".py")
            else "package.module:function"
        )
        raise ValueError(f"model: {name!r} is not the name of an object; write {fix}, without folders or .py")
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        missing, inside, _ = str(error.name).partition(".")
        if inside and missing in sys.modules:
            raise ModuleNotFoundError(
                f"model: {name} needs the module {error.name}, which the package {missing!r} does not have",
                name=error.name,
            ) from error
        raise ModuleNotFoundError(
            f"model: {name} needs the package {missing!r}, which is not installed; install the distribution that contains "
            "it with pip, or put its folder on PYTHONPATH",
            name=error.name,
        ) from error
    if not hasattr(found, attribute):
        raise ValueError(f"model: module {module} has no {attribute!r}")
    return getattr(found, attribute)


def _embedded(model: Any, embed: Callable[[Any], Any], readout: Callable[[Any], Any]) -> Callable[..., Any]:
    def function(*arrays: Any) -> Any:
        output = model(inputs_embeds=embed(*arrays))
        states = getattr(output, "last_hidden_state", None)
        if states is None:
            states = getattr(output, "logits", None)
        if states is None:
            raise TypeError(
                f"model: {type(model).__name__} returns neither last_hidden_state nor logits; wrap it in a function"
            )
        return readout(states[:, -1])

    return function


def _is_torch_module(model: Any) -> bool:
    """Return whether the model is a module of torch, which is not imported for this."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def _of_torch(modules: list[Any], function: Callable[..., Any]) -> Predictor:
    torch = sys.modules["torch"]

    def predict(*arrays: Any) -> np.ndarray:
        weights = (p for one in modules for p in one.parameters() if p.is_floating_point() or p.is_complex())
        weight = next(weights, None)
        tensors = [torch.from_numpy(np.array(array)) for array in arrays]
        if weight is not None:
            tensors = [_match_weight(torch, tensor, weight) for tensor in tensors]
        modes = [(part, part.training) for one in modules for part in one.modules()]
        for one in modules:
            one.eval()
        try:
            with torch.no_grad():
                found = function(*tensors)
        finally:
            for part, training in modes:
                part.training = training
        if not isinstance(found, torch.Tensor):
            raise TypeError(
                f"model: {type(modules[0]).__name__} must return a tensor of predictions, gave {type(found).__name__}; wrap it "
                "in a function, or see as_callable for models with inputs_embeds"
            )
        found = found.cpu()
        half = found.dtype in (torch.float16, torch.bfloat16)
        return np.asarray((found.float() if half else found).numpy())

    return predict


def _match_weight(torch: Any, tensor: Any, weight: Any) -> Any:
    """Return a tensor on the device of a weight, in its precision unless it is of integers; complex tokens stay complex."""
    if not (tensor.is_floating_point() or tensor.is_complex()):
        return tensor.to(weight.device, torch.int64)
    real = weight.dtype.to_real() if weight.is_complex() else weight.dtype
    if tensor.is_complex():
        return tensor.to(weight.device, torch.complex128 if real == torch.float64 else torch.complex64)
    return tensor.to(weight.device, real)
