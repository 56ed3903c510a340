"""Types of plain data: mappings as in JSON and YAML."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = dict[str, Any]  # Any: text, numbers, flags, nothing, and lists and mappings of them
"""A mapping of plain data; its reader validates the contents."""
JsonView = Mapping[str, Any]  # Any: likewise
"""The same, read-only."""
