"""MRAG-Bench's nine scenarios drawn with the guide's organisms: an edition in the data
set's own layout.
"""

from vrag_kit.synthetic.mrag_bench.drawing import (
    generate_mrag_bench,
    open_class_labels,
    open_mrag_bench,
    open_mrag_passages,
)
from vrag_kit.synthetic.mrag_bench.passages import write_passage
from vrag_kit.synthetic.mrag_bench.topics import EDITIONS, SCENARIOS
