"""Download files of a data set from the Hugging Face hub to a local folder."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from vrag_kit.errors import VragError


def download_from_hub(rows: str, to: Path, patterns: Sequence[str]) -> None:
    """Download the files that match `patterns` from a hub data set to the folder `to`.

    `rows` is "<owner>/<name>@<revision>"; existing files are not fetched again. Raises
    `VragError` if the download fails.
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
