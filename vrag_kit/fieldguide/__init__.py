"""The Field Guide: invented species, drawn, stored and read exactly like the real benchmark."""

from vrag_kit.fieldguide.guide import EDITIONS, draw_field_guide

__all__ = ["EDITIONS", "draw_field_guide"]
