"""Analysis: intervals over clusters, paired tests, accuracy, gCUE, and the papers' own numbers."""

from vrag_kit.analysis.accuracy import accuracy, per_query
from vrag_kit.analysis.comparison import compare
from vrag_kit.analysis.gcue import Ratio, fieller, gcue, gcue_of, gcue_printed
from vrag_kit.analysis.intervals import Estimate, estimate, summarise
from vrag_kit.analysis.published import beside_paper, in_percent, printed, published
from vrag_kit.analysis.settings_table import settings_table

__all__ = ["Estimate", "Ratio", "accuracy", "beside_paper", "compare", "estimate", "fieller", "gcue", "gcue_of", "gcue_printed", "in_percent", "per_query",
           "printed", "published", "settings_table", "summarise"]
