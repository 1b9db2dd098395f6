"""Post-processing of story embeddings: affine steps, fitted on stories and combined into one affine map.

Sources: Mu and Viswanath, All-but-the-Top (ICLR 2018); Su et al., Whitening Sentence Representations (2021). Our own
decisions: principal components are computed from centered vectors; the covariance for whitening is shrunk (Ledoit and
Wolf), because with few stories it is singular or dominated by rounding errors.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from narrlit.data.schema import FloatArray
from narrlit.errors import OptionError
from narrlit.models.config import Steps


class AffineMap(NamedTuple):
    """Affine map of unit vectors.

    Attributes:
        weight: (d, D).
        bias: (d,).
        shrinkage: shrinkage of the covariance by `whiten`, 0 to 1; None without this step.
    """

    weight: NDArray[np.float64]
    bias: NDArray[np.float64]
    shrinkage: float | None = None

    def __call__(self, vectors: FloatArray) -> NDArray[np.float64]:
        """Map vectors (N, D), of any length, to unit vectors (N, d)."""
        return _unit(_unit(vectors) @ self.weight.T + self.bias)


def fit_steps(steps: Steps, vectors: FloatArray) -> AffineMap:
    """Normalize vectors (N, D), and fit steps on them, each on the output of the previous step.

    - `center`: subtract the mean.
    - `abtt` (k): center, and remove the first k principal components.
    - `whiten`: center, and scale every principal component to variance 1, in descending order of variance.
    - `truncate` (n): keep the first n dimensions; after `whiten` these are the first principal components.

    Raises:
        OptionError: if there are too few stories or dimensions for a step.
    """
    from sklearn.covariance import ledoit_wolf  # embeddings without steps need no scikit-learn
    from sklearn.decomposition import PCA

    unit, shrinkage = _unit(vectors), None
    weight, bias = np.eye(unit.shape[1]), np.zeros(unit.shape[1])
    for name, number in steps:
        values = unit @ weight.T + bias
        _check_size(name, number, values)
        linear = np.eye(values.shape[1])
        if name == "truncate":
            linear = linear[:number]
        else:
            bias = bias - values.mean(axis=0)
        if name == "abtt":
            top = PCA(number, svd_solver="full").fit(values).components_
            linear -= top.T @ top
        elif name == "whiten":
            covariance, shrinkage = ledoit_wolf(values)
            variances, components = np.linalg.eigh(covariance)
            linear = (components / np.sqrt(variances)).T[::-1]
        weight, bias = linear @ weight, linear @ bias
    return AffineMap(weight, bias, shrinkage)


def _check_size(name: str, number: int, values: NDArray[np.float64]) -> None:
    """Raise OptionError if a step needs more stories or dimensions than these vectors (N, d) have."""
    count, dimension = values.shape
    if name == "truncate":
        if number > dimension:
            raise OptionError("truncated_dimension", number=number, dimension=dimension)
    elif count < 2 or number >= min(count, dimension):
        if number:
            raise OptionError("few_for_number", step=f"{name}:{number}", stories=count, dimension=dimension)
        raise OptionError("few_for_step", step=name, stories=count, dimension=dimension)


def _unit(vectors: NDArray[np.floating]) -> NDArray[np.float64]:
    """Scale vectors (N, D) to length 1; zeros stay zeros."""
    values = np.asarray(vectors, dtype=np.float64)
    lengths = np.linalg.norm(values, axis=1, keepdims=True)
    unit: NDArray[np.float64] = values / np.maximum(lengths, 1e-12)
    return unit
