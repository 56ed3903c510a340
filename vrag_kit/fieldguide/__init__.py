"""The Field Guide: invented species, drawn, stored and read exactly like the real
benchmark.
"""

from vrag_kit.fieldguide.guide import draw_field_guide
from vrag_kit.fieldguide.pages import EDITIONS

__all__ = ["EDITIONS", "draw_field_guide"]
