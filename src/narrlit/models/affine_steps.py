"""Post-processing of story embeddings: affine steps, fitted on stories and folded into one map of unit vectors.

Sources: Mu and Viswanath, All-but-the-Top (ICLR 2018); Su et al., Whitening Sentence Representations (2021). Decisions
of ours: components are those of centered vectors; the covariance of whitening is shrunk (Ledoit and Wolf), the less the
more stories: otherwise few stories could not be whitened, and components of little variance would be rounding errors.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.covariance import ledoit_wolf
from sklearn.decomposition import PCA

from narrlit.data.schema import FloatArray
from narrlit.errors import OptionError
from narrlit.models.config import Steps


class AffineMap(NamedTuple):
    """Map of unit vectors by a weight (d, D) and a bias (d,); the covariance's shrinkage, 0 to 1, if there was any."""

    weight: NDArray[np.float64]
    bias: NDArray[np.float64]
    shrinkage: float | None = None

    def __call__(self, vectors: FloatArray) -> NDArray[np.float64]:
        """Map vectors (N, D), of any length, to unit vectors (N, d)."""
        return _unit(_unit(vectors) @ self.weight.T + self.bias)


def fit_steps(steps: Steps, vectors: FloatArray) -> AffineMap:
    """Fit steps on vectors (N, D), of which unit vectors are made first, each step on what those before it give.

    - `center`: subtract the mean.
    - `abtt` (k): center, and remove the k first principal components.
    - `whiten`: center, and scale every principal component to variance 1, the first component first.
    - `truncate` (n): keep the first n dimensions; after `whiten` these are the principal components.

    Raises:
        OptionError: if the stories are too few or the dimensions too few for a step.
    """
    unit, shrinkage = _unit(vectors), None
    weight, bias = np.eye(unit.shape[1]), np.zeros(unit.shape[1])
    for name, number in steps:
        values = unit @ weight.T + bias
        count, dimension = values.shape
        linear = np.eye(dimension)
        if name == "truncate":
            if number > dimension:
                raise OptionError(f"`postprocess=truncate:{number}`: the embeddings have {dimension} dimensions")
            linear = linear[:number]
        else:
            if count < 2 or number >= min(count, dimension):
                step = f"{name}:{number}" if number else name
                raise OptionError(
                    f"`postprocess={step}`: {count} stories of {dimension} dimensions are too few; `fit_on` more"
                    f"{', or a smaller number' if number else ''}"
                )
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


def _unit(vectors: NDArray[np.floating]) -> NDArray[np.float64]:
    values = np.asarray(vectors, dtype=np.float64)
    unit: NDArray[np.float64] = values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-12)
    return unit
