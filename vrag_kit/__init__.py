"""A Jupyter-first research kit for visual retrieval-augmented generation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from vrag_kit.analysis import load_results

__all__ = ["load_results"]


def __getattr__(name: str) -> Any:
    """`load_results`, imported when it is first used: `import vrag_kit` alone loads no
    library.
    """
    if name == "load_results":
        from vrag_kit.analysis import load_results

        return load_results
    raise AttributeError(
        f"module 'vrag_kit' has no attribute {name!r}; it has {', '.join(__all__)}"
    )


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
