"""Types of plain data: mappings as JSON and YAML hold them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]  # Any: text, numbers, flags, nothing, and lists and mappings of them
"""A mapping of plain data; who reads it checks what it holds."""
JsonView = Mapping[str, Any]  # Any: likewise
"""The same, for who only reads it."""
