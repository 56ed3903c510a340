"""How the models of this room are run: what a notebook's `run_with` says of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from vrag_kit.generation.asking_options import Asking


def how_to_run(
    run_with: Mapping[str, Any] | None,  # Any: as a notebook's parameters have it
    usual: Asking,
) -> Asking:
    """`usual` with the device, batch_size and retry_failures of `run_with`; the rest of
    what it may say is about answers. Raises `VragError` for what is no field of
    `Asking`.
    """
    told = Asking.of(run_with or {})
    return replace(
        usual,
        device=told.device,
        batch_size=told.batch_size,
        retry_failures=told.retry_failures,
    )
