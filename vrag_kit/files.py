"""Write files so that a crash, a full disk or a second process never leaves half of one."""

from __future__ import annotations

import os
from pathlib import Path


def write_file(path: Path, content: str | bytes) -> None:
    """Put `content` (text as UTF-8) at `path`, replacing an older file only once the new one is complete; makes the folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with part.open("wb") as file:
            file.write(content if isinstance(content, bytes) else content.encode("utf-8"))
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, path)
    finally:
        part.unlink(missing_ok=True)
