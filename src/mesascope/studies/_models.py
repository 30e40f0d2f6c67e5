"""Specifications of all models: one kind for every builder of `mesascope.models`, and one for what is composed.

What the data decide (dimension, number of symbols, length) is not asked again.
"""

from typing import Annotated, TypeAlias

from pydantic import Field

from mesascope.processes import Data
from mesascope.specs import kinds

from ._composed_model import ComposedSpec
from ._linear_models import (
    FactoredLinearAttentionSpec,
    FactoredLinearTransformerSpec,
    LinearAttentionSpec,
    LinearTransformerSpec,
    MesaTransformerSpec,
    MultiHeadLinearAttentionSpec,
)
from ._prompt_models import LoopedLinearTransformerSpec, PromptLinearTransformerSpec
from ._softmax_models import PromptTransformerSpec, TokenTransformerSpec, TransformerSpec

_KINDS = (
    LinearAttentionSpec,
    MultiHeadLinearAttentionSpec,
    FactoredLinearAttentionSpec,
    LinearTransformerSpec,
    FactoredLinearTransformerSpec,
    MesaTransformerSpec,
    TransformerSpec,
    TokenTransformerSpec,
    PromptLinearTransformerSpec,
    LoopedLinearTransformerSpec,
    PromptTransformerSpec,
    ComposedSpec,
)

BuiltModelSpec: TypeAlias = (
    LinearAttentionSpec
    | MultiHeadLinearAttentionSpec
    | FactoredLinearAttentionSpec
    | LinearTransformerSpec
    | FactoredLinearTransformerSpec
    | MesaTransformerSpec
    | TransformerSpec
    | TokenTransformerSpec
    | PromptLinearTransformerSpec
    | LoopedLinearTransformerSpec
    | PromptTransformerSpec
    | ComposedSpec
)
"""A model that is built from its parts."""
BUILT_KINDS: tuple[str, ...] = tuple(one.model_fields["kind"].default for one in _KINDS)

ModelSpec: TypeAlias = Annotated[BuiltModelSpec, Field(discriminator="kind"), kinds(*BUILT_KINDS)]
"""A model, told apart by `kind`."""


def fitting_models(data: Data) -> list[str]:
    """The kinds of models that read this."""
    return [one.model_fields["kind"].default for one in _KINDS if data in one.reads]
