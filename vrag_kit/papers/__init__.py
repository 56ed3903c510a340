"""Papers: one folder each, with its wording, its rubric and its printed numbers as
data, and what it alone defines.
"""

from vrag_kit.papers.published import published

__all__ = ["published"]
