"""A common interface to models of all libraries: functions from contexts to predictions."""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np

from mesascope.specs import show

from ._every_position import Embedded, EveryPosition, Predictor, TokenLogits, XsYs

Interface = Literal["context", "xs-ys", "tokens"]
"""How a model is called: with one context; with xs and ys of a prompt, of which it predicts all labels; with symbols, for the
logits of the next symbol at every position."""
# the interface that the first parameters of a model show
_BY_PARAMETERS: dict[tuple[str, ...], Interface] = {("xs", "ys"): "xs-ys", ("input_ids",): "tokens"}


def as_callable(
    model: Any,
    *,
    interface: Interface | None = None,
    embed: Callable[[Any], Any] | None = None,
    readout: Callable[[Any], Any] | None = None,
) -> Predictor:
    """Return a model as a function of NumPy arrays that predicts from a context.

    Sequences: contexts (batch, t, d) → predictions of x_{t+1} (batch, d). Prompts: x (batch, n + 1, d) and y (batch, n)
    → the label of the last x, (batch,).

    Args:
        model: one of
            - a model of mesascope, or any function of NumPy or JAX arrays with the shapes above;
            - a `torch.nn.Module` with the shapes above: called in evaluation mode without gradients, in the precision and on
              the device of its weights (its mode is restored afterwards);
            - a function or module `forward(xs, ys)` that predicts every label of a prompt from the examples before it, as
              programs on in-context learning have it: xs (batch, n + 1, d), ys (batch, n + 1) → (batch, n + 1);
            - a causal language model, such as those of Hugging Face, `forward(input_ids)`: symbols (batch, t) → logits
              (batch, t, S), or an object with these as its `logits`; its softmax is the prediction;
            - a causal model with the interface of Hugging Face, together with `embed`: it is called as
              `model(inputs_embeds=embed(…))`, and `readout` maps its `last_hidden_state`, or else its `logits`, at a position
              to the prediction.
        interface: "xs-ys" for the third of these, "tokens" for the fourth, "context" for the others; by default "xs-ys" where
            the first two parameters have these names, and "tokens" where the first is `input_ids`.
        embed: contexts → embedded tokens (batch, length, width). For modules of torch, it maps tensors to tensors. All
            predictions are read in one pass if it makes one token of each of a sequence, or x_1, y_1, …, x_{n+1} of a prompt,
            unless a shorter context shows that the model is not causal, or `interface` is "context".
        readout: entries at a position (batch, width) → predictions; by default the identity.

    Raises:
        TypeError: `model` cannot be called, or takes `inputs_embeds` first, without `embed`; `readout` is given without
            `embed`, or `embed` with an interface other than "context".
        ValueError: an unknown interface.
    """
    if interface not in (None, *get_args(Interface)):
        known = ", ".join(get_args(Interface))
        raise ValueError(f"interface: unknown interface {show(interface)}; use one of {known}")
    if isinstance(model, EveryPosition):
        if (interface, embed, readout) != (None, None, None):
            raise TypeError("model: was made by as_callable already; give interface, embed and readout there")
        return model
    if isinstance(model, type):
        raise TypeError(f"model: {model.__name__} is a class, not a model; create one: {model.__name__}(…)")
    if not callable(model):
        raise TypeError(
            f"model: must be a model, or a function of contexts (batch, t, d), got {type(model).__name__}"
        )
    if embed is not None:
        if interface not in (None, "context"):
            raise TypeError(f"embed: is not used with the interface {interface}; remove one of the two")
        function = _embedded(model, embed, readout or (lambda entries: entries))
        embedded = Embedded(_of_library(function, model, embed, readout))
        return embedded if interface is None else embedded.__call__
    if readout is not None:
        raise TypeError("readout: is used only with embed; remove it, or give embed")
    if interface is None and _parameters(model)[:1] == ("inputs_embeds",):
        raise TypeError(
            "model: takes inputs_embeds; say how to make them: as_callable(model, embed=…, readout=…)"
        )
    interface = interface or _interface_of(model)
    if interface == "tokens":
        return TokenLogits(_explained(_of_library(_logits_of(model), model), interface))
    predict = _explained(_of_library(model, model), interface)
    return XsYs(predict) if interface == "xs-ys" else predict


# what functions raise that are given data of another form; RuntimeError is torch's
_OF_ANOTHER_FORM = (TypeError, ValueError, IndexError, AttributeError, AssertionError, RuntimeError)


def _explained(predict: Predictor, interface: Interface) -> Predictor:
    """The function, whose exceptions say in a note how it was called, and which interface may fit instead."""

    def call(*arrays: Any) -> np.ndarray:
        try:
            return predict(*arrays)
        except _OF_ANOTHER_FORM as error:
            if interface == "tokens" and isinstance(error, IndexError):
                most = int(np.max(arrays[0]))
                raise ValueError(
                    f"model: was given symbols 0 to {most} and looked up one that it does not have ({error}); give it a "
                    f"vocabulary of at least {most + 1}"
                ) from error
            error.add_note(_called(interface, arrays))
            raise

    return call


def _called(interface: Interface, arrays: tuple[Any, ...]) -> str:
    x = np.shape(arrays[0])
    if interface == "tokens":
        return (
            f"it was called with symbols {x} of type {arrays[0].dtype}; PyTorch looks up `torch.as_tensor(symbols).long()`; "
            "give interface='context' if it takes contexts of another form"
        )
    if len(arrays) == 1:
        fix = "give interface='tokens' if it returns logits of symbols, or data of prompts if it takes inputs and labels"
        return f"it was called with contexts {x}; {fix}"
    y = np.shape(arrays[1])
    if interface == "xs-ys":
        return f"it was called with xs {x} and ys {y}; give interface='context' if it takes the labels of the examples only"
    return f"it was called with x {x} and y {y}, without a label of the query; give interface='xs-ys' if it takes one"


def _of_library(function: Callable[..., Any], model: Any, *others: Any) -> Predictor:
    """Return a function of NumPy arrays; tensors are made if the model is a module of torch."""
    if not is_torch_module(model):
        return _of_arrays(function)
    return _of_torch([one for one in (model, *others) if is_torch_module(one)], function)


def _of_arrays(function: Callable[..., Any]) -> Predictor:
    """The function with arrays of its own, which it may change, and which `torch.from_numpy` takes without a warning."""
    return lambda *arrays: _array_of(function(*map(np.array, arrays)))


def _array_of(found: Any) -> np.ndarray:
    """What a function returned, as an array; formats that NumPy cannot compute with, such as bfloat16, in single precision."""
    if inspect.iscoroutine(found):
        found.close()
        raise TypeError("model: is an async function; give one that returns its predictions")
    if isinstance(found, np.ma.MaskedArray) and np.ma.is_masked(found):
        raise TypeError("model: answers with a masked array; return a number for every prediction")
    array = np.asarray(found)
    return array.astype(np.float32) if array.dtype.kind == "V" and array.dtype.names is None else array


def _parameters(model: Any) -> tuple[str, ...]:
    """The names of its parameters, none where they are not known."""
    try:
        return tuple(inspect.signature(getattr(model, "forward", model)).parameters)
    except (
        Exception
    ):  # compiled functions may have none; other objects may answer any name with an error of their own
        return ()


def _interface_of(model: Any) -> Interface:
    names = _parameters(model)
    found = (interface for first, interface in _BY_PARAMETERS.items() if names[: len(first)] == first)
    return next(found, "context")


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
        found = readout(states.reshape(-1, states.shape[-1]))
        return found.reshape(*states.shape[:2], *found.shape[1:])

    return function


def _without_others(output: Any) -> Any:
    """Return the first of several outputs, such as the logits of (logits, cache)."""
    return output[0] if isinstance(output, tuple) and not hasattr(output, "_fields") else output


def _logits_of(model: Any) -> Callable[..., Any]:
    def function(tokens: Any) -> Any:
        output = _without_others(model(tokens))
        logits = output if hasattr(output, "shape") else getattr(output, "logits", None)
        if logits is None:
            raise TypeError(
                f"model: {type(model).__name__} returns no logits; take the model with its language-modelling head"
            )
        return logits

    return function


def is_torch_module(model: Any) -> bool:
    """Return whether the model is a module of torch, which is not imported for this."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def _of_torch(modules: list[Any], function: Callable[..., Any]) -> Predictor:
    torch = sys.modules["torch"]

    def predict(*arrays: Any) -> np.ndarray:
        weights = (p for one in modules for p in one.parameters() if p.is_floating_point() or p.is_complex())
        weight = next(weights, None)
        tensors = [torch.from_numpy(np.array(array)) for array in arrays]
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
                'in a function, set interface="tokens" for logits, or see as_callable for models with inputs_embeds'
            )
        found = found.cpu()
        half = found.dtype in (torch.float16, torch.bfloat16)
        return np.asarray((found.float() if half else found).numpy())

    return predict


def _match_weight(torch: Any, tensor: Any, weight: Any) -> Any:
    """Return a tensor on the device of a weight, in its precision unless it is of integers; complex tokens stay complex.

    Integers have 64 bits, as modules that look them up need; without a weight the rest stays as it is.
    """
    if not (tensor.is_floating_point() or tensor.is_complex()):
        tensor = tensor.to(torch.int64)
        return tensor if weight is None else tensor.to(weight.device)
    if weight is None:
        return tensor
    real = weight.dtype.to_real() if weight.is_complex() else weight.dtype
    if tensor.is_complex():
        return tensor.to(weight.device, torch.complex128 if real == torch.float64 else torch.complex64)
    return tensor.to(weight.device, real)
