"""Sequence models: linear attention."""

from ._linear_attention import FactoredLinearAttention as FactoredLinearAttention
from ._linear_attention import LinearAttention as LinearAttention
from ._linear_attention import LinearAttentionModel as LinearAttentionModel
from ._linear_attention import MultiHeadLinearAttention as MultiHeadLinearAttention
from ._normalizer import NAMED_NORMALIZERS as NAMED_NORMALIZERS
from ._normalizer import Normalizer as Normalizer
from ._normalizer import check_normalizer as check_normalizer
from ._normalizer import normalizer_values as normalizer_values
