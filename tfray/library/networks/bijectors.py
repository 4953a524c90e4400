"""``tf.contrib.distributions.bijectors``: differentiable maps with inverses, for `TransformedDistribution`."""

from tfray.library.distributions.bijector import Bijector, Chain, Identity, Inline, Invert
from tfray.library.distributions.conditional_distributions import ConditionalBijector
from tfray.library.distributions.elementwise_bijectors import (
    AbsoluteValue,
    AffineScalar,
    Exp,
    Gumbel,
    Kumaraswamy,
    PowerTransform,
    Sigmoid,
    SinhArcsinh,
    Softplus,
    Softsign,
    Square,
    Weibull,
)
from tfray.library.distributions.vector_bijectors import (
    Affine,
    CholeskyOuterProduct,
    FillTriangular,
    MaskedAutoregressiveFlow,
    MatrixInverseTriL,
    Ordered,
    Permute,
    RealNVP,
    Reshape,
    ScaleTriL,
    SoftmaxCentered,
    TransformDiagonal,
)
from tfray.library.networks.flow_layers import (
    masked_autoregressive_default_template,
    masked_dense,
    real_nvp_default_template,
)

# fmt: off
__all__ = [
    "AbsoluteValue", "Affine", "AffineScalar", "Bijector", "Chain", "CholeskyOuterProduct",
    "ConditionalBijector", "Exp", "FillTriangular",
    "Gumbel", "Identity", "Inline", "Invert", "Kumaraswamy", "MaskedAutoregressiveFlow", "MatrixInverseTriL",
    "Ordered", "Permute", "PowerTransform", "RealNVP", "Reshape", "ScaleTriL", "Sigmoid", "SinhArcsinh",
    "SoftmaxCentered", "Softplus", "Softsign", "Square", "TransformDiagonal", "Weibull",
    "masked_autoregressive_default_template", "masked_dense", "real_nvp_default_template",
]
# fmt: on
