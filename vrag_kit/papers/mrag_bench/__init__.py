"""MRAG-Bench (Hu et al., ICLR 2025): its models, and examples that are swapped."""

from vrag_kit.papers.mrag_bench.models import paper_models
from vrag_kit.papers.mrag_bench.swapped import swapped_examples

__all__ = ["paper_models", "swapped_examples"]
