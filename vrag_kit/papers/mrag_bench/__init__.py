"""MRAG-Bench (Hu et al., ICLR 2025): its models, and its printed numbers."""

from vrag_kit.papers.mrag_bench.models import paper_models

__all__ = ["paper_models"]
