"""What is true of the Field Guide by construction, said only where it is looked at."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import cleandoc
from pathlib import Path
from typing import TYPE_CHECKING, Any

from vrag_kit.synthetic.generate import CRAG_MM_EDITIONS, DRAWN, DRAWN_MRAG, DRAWN_SUITE
from vrag_kit.workspace import path as project_path

if TYPE_CHECKING:
    from IPython.display import Markdown

_HERE = Path(__file__).parent.resolve()


def data_card_note(about: str | Mapping[str, Any] | Sequence[Any], text: str) -> Markdown | None:
    """`text`, marked as a remark, where `about` names an edition of the Field Guide or
    something that was made for it; else None, which a notebook does not show.

    `about` is the value of a notebook's parameter: data, a model, a retriever, a file of
    labels, or a list of such, of which one is enough.
    """
    if not synthetic_mark(about):
        return None
    from IPython.display import Markdown

    note = f"**About the Field Guide.** {cleandoc(text)}"
    return Markdown(note)  # type: ignore[no-untyped-call]  # IPython has no types


def synthetic_mark(about: str | Mapping[str, Any] | Sequence[Any]) -> str:
    """The mark of figures drawn from `about` (as in `data_card_note`): "synthetic data" if it names
    an edition of the Field Guide or something made for it, else "".
    """
    several = isinstance(about, Sequence) and not isinstance(about, str)
    ours = any(_ours(each) for each in (about if several else [about]))
    return "synthetic data" if ours else ""


def _ours(named: object) -> bool:
    """Whether a parameter names an edition, or a file or folder that comes with the kit:
    weights, labels, logs of annotators.
    """
    name = named.get("model") if isinstance(named, Mapping) else named
    if not isinstance(name, str) or not name:
        return False
    drawn = name in {**DRAWN, **DRAWN_MRAG, **CRAG_MM_EDITIONS, **DRAWN_SUITE}
    return drawn or project_path(name).resolve().is_relative_to(_HERE)
