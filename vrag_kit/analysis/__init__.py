"""Analysis: intervals over clusters, paired tests, and the papers' own numbers."""

from vrag_kit.analysis.comparison import compare
from vrag_kit.analysis.intervals import Estimate, estimate, summarise
from vrag_kit.analysis.published import beside_paper, in_percent, published

__all__ = ["Estimate", "beside_paper", "compare", "estimate", "in_percent", "published", "summarise"]
