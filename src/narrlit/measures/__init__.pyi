from .collection import CollectionSimilarity as CollectionSimilarity
from .names import DEFAULT_MEASURE as DEFAULT_MEASURE
from .names import MEASURES as MEASURES
from .names import MeasureName as MeasureName
from .similarity import (
    Cosine as Cosine,
)
from .similarity import (
    EncoderSimilarity as EncoderSimilarity,
)
from .similarity import (
    Lexical as Lexical,
)
from .similarity import (
    MeanMaxSimilarity as MeanMaxSimilarity,
)
from .similarity import (
    PassageSimilarity as PassageSimilarity,
)
from .similarity import (
    Similarity as Similarity,
)
from .similarity import (
    measure_of as measure_of,
)
from .similarity import (
    open_measure as open_measure,
)
from .similarity import (
    scored_by as scored_by,
)
