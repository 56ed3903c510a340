"""Files of a data set on the Hugging Face hub, once, in a folder of one's own."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vrag_kit.errors import VragError


def from_hub(rows: str, to: Path, patterns: Sequence[str]) -> None:
    """Fetch the files of these patterns of a data set, "<owner>/<name>@<revision>", to
    `to`; those that are there already are not fetched again.

    Raises `VragError` for a name that cannot be fetched.
    """
    from huggingface_hub import snapshot_download

    try:
        snapshot_download(
            rows.partition("@")[0],
            repo_type="dataset",
            revision=rows.partition("@")[2] or None,
            allow_patterns=list(patterns),
            local_dir=to,
        )
    except (OSError, ValueError) as error:
        raise VragError(
            f"rows {rows!r} cannot be fetched from the Hugging Face hub:"
            f" {str(error).strip().splitlines()[0]} Check name and network; what was fetched"
            f" stays in {to}, and the same command goes on."
        ) from error
