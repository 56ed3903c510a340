"""`Workspace`: where a notebook keeps what it computes, and the hardware that it uses."""

from __future__ import annotations

from pathlib import Path

from vrag_kit.config import Count, StrictModel
from vrag_kit.files import project_path


class Hardware(StrictModel):
    """Hardware and batching settings, which are not part of a stored answer's key."""

    device: str = "cpu"
    """Where local models run: "cpu", "cuda", "cuda:1"."""
    batch_size: Count = 16
    """Number of prompts per batch of a local model, or of parallel calls to an endpoint."""
    retry_failures: bool = False
    """Whether failed calls are repeated. Empty and truncated answers have not failed; such replies
    of a judge have.
    """


class Workspace(Hardware):
    """Where a notebook keeps what it computes, and the hardware that it uses. Relative folders
    start at the project root. Nothing of it is part of a stored answer's key; device and batch size
    may change the last bits of a number, and so rarely a word.

    Raises `VragError` for an unknown field, and for a value that does not fit.
    """

    cache_dir: Path | str = "runs/embeddings"
    """Embeddings and finished searches."""
    answers_dir: Path | str = "runs/answers"
    """The answer store, `answers.sqlite`."""
    figures_dir: Path | str = "runs/figures-small"
    """Figures and tables."""

    @property
    def answers_file(self) -> Path:
        """The file of the answer store."""
        return project_path(self.answers_dir) / "answers.sqlite"
