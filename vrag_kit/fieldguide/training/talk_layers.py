"""First weights of the answerer of conversations, which look things up before anything
is learned.

A small model needs millions of tokens until it finds by itself that a fact stands behind
the name and the word that it wants. The first layer notes at each token what stands one
to four tokens back, which name was said last, and which question. The second finds the
name behind a look (the four tokens before agree), the fact behind a name and a question,
and what follows in a list. All weights are then trained like any others.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import torch

from vrag_kit.fieldguide.training.first_layers import orthogonal
from vrag_kit.fieldguide.training.talk_tokens import WORDS, pieces
from vrag_kit.fieldguide.worn.asks import FORMS
from vrag_kit.fieldguide.worn.entities import ATTRIBUTES, WEB_FACTS
from vrag_kit.fieldguide.worn.pages import SENTENCES

THETA = 1e8
"""Base of the rotary positions: over half of a head's dimensions hardly turn."""
SHARP = 8.0  # of heads that look back by places
NEAR = 15.0  # how steeply the nearest of a sort is preferred
SORTED = 1.6  # and how much the sort counts
MATCH = 1.7
SINK = 0.5  # share of a full match from which on a head attends
SAID = 0.22  # how loud what was found is
FORGOTTEN = 0.16
NOISE = 0.05
SORTS = (*WORDS, "question")
"""Sorts of tokens that have a direction of their own; "said" stands for , and : too."""


class Span(NamedTuple):
    """Where in a token's state something is noted."""

    start: int
    size: int

    @property
    def rows(self) -> slice:
        """As an index."""
        return slice(self.start, self.start + self.size)


ID, SORT = Span(0, 80), Span(80, 16)
BACK = (Span(96, 32), Span(128, 24), Span(152, 16), Span(168, 16))
GENUS, EPITHET = Span(184, 24), Span(208, 24)
ASKED = Span(232, 22)
REST, ANSWER = Span(254, 1), Span(255, 1)
FIRST = "<|system|>"
"""The token that begins each prompt: heads that find nothing rest on it."""
WIDTH = 256
_ASKED = {
    "length": ("Which is longer, {} or", "Is {} longer than", "Is {} more than 9 mm long?"),
    "width": ("Is {} more than 9 mm wide?",),
    "year": ("Was {} described before 1850?",),
    "region": ("Could one see {} in Norland",),
    "found": ("Could one see {} on moss",),
}
"""What comparisons ask for first."""


def about() -> dict[str, str]:
    """Piece of text → the fact that it asks for or that follows it."""
    found: dict[str, set[str]] = {}
    for key, text in _questions():
        for it in ("it", "that one", "Talia ensis", "this moth"):
            for piece in pieces(f" {text.format(it, it=it)}"):
                found.setdefault(piece, set()).add(key)
    facts = dict.fromkeys((*ATTRIBUTES, *WEB_FACTS), "Norland")
    for key, sentence in SENTENCES.items():
        said = pieces(" " + sentence.format(**facts, name="Talia ensis"))
        keys = {"capital": ("region", "capital"), "born": ("describer", "born")}.get(key, (key,))
        for piece, each in zip(said, keys, strict=False):
            found.setdefault(piece, set()).add(each)
    for key in SENTENCES:
        found.setdefault(f'",\n  "{key}": "', set()).add(key)
    return {piece: min(keys) for piece, keys in found.items() if len(keys) == 1 and len(piece) > 2}


def first_embeddings(tokens: Sequence[str], generator: torch.Generator) -> torch.Tensor:
    """Rows of the tokens, (n, WIDTH), of length 1: what each is, and of what sort.

    Pieces about one fact are alike; numbers and years lie on a curve.
    """
    rows = torch.zeros(len(tokens), WIDTH)
    own = _unit(torch.randn(len(tokens), ID.size, generator=generator))
    keys = {key: _random(generator) for key in FORMS}
    curve = {sort: torch.randn(7, ID.size, generator=generator) for sort in ("number", "year")}
    directions = torch.eye(SORT.size)
    asked = about()
    sort_of: dict[str, str] = {}
    for sort, words in WORDS.items():
        sort_of |= dict.fromkeys([f" {word}" for word in words], sort)
    questions = {piece for piece in asked if piece.endswith("?") or piece in _openings()}
    for number, token in enumerate(tokens):
        sort = "question" if token in questions else sort_of.get(token, "")
        sort = "said" if token in (",", ":") else sort
        if token in asked:
            own[number] = _unit(keys[asked[token]] + 0.5 * own[number])
        if sort in curve:
            turned = _curve(int(token)) @ curve[sort]
            own[number] = _unit(_unit(turned) + 0.7 * own[number])
        rows[number, ID.rows] = 0.8 * own[number] if sort else own[number]
        if sort:
            rows[number, SORT.rows] = 0.6 * directions[SORTS.index(sort)]
        if token == FIRST:
            rows[number] = 0
            rows[number, REST.start] = 1.0
    return rows


def _questions() -> list[tuple[str, str]]:
    """Fact, and a question for it about "{it}" or "{}"."""
    asked = [(key, form.question) for key, form in FORMS.items()]
    for key, texts in _ASKED.items():
        asked += [(key, text) for text in texts]
    return asked


def _openings() -> set[str]:
    """How questions begin."""
    found = set()
    for _, text in _questions():
        for it in ("it", "that one", "Talia ensis", "this moth"):
            found.add(pieces(f" {text.format(it, it=it)}")[0])
    return found


def _curve(number: int) -> torch.Tensor:
    """A number's place, coarse to fine."""
    share = (number - 1840) / 100 if number > 1000 else (number - 60) / 60
    turns = torch.tensor([1.5, 4.0, 10.0]) * share
    return torch.cat([torch.tensor([2.5 * share]), turns.sin(), turns.cos()])


def give_talk_layers(model: Any, tokens: Sequence[str], seed: int) -> None:
    """Set embeddings and the weights of all layers of a FastVLM's language model."""
    generator = torch.Generator().manual_seed(seed)
    text = model.model.language_model
    with torch.no_grad():
        for number, layer in enumerate(text.layers):
            _make_quiet(layer, generator, 0.08 if number < 2 else 0.25)
        model.get_input_embeddings().weight.copy_(first_embeddings(tokens, generator))
        words = orthogonal(ID.size, generator)  # notes of tokens back can be compared
        reads = {span: words[: span.size] for span in (*BACK, ASKED)}
        for span in (GENUS, EPITHET):
            reads[span] = orthogonal(ID.size, generator)[: span.size]
        _note(_Heads(model.config.get_text_config(), text.layers[0]), reads)
        table = model.get_input_embeddings().weight
        first = table[tokens.index("<|assistant|>"), ID.rows]
        _mark_answers(_Heads(model.config.get_text_config(), text.layers[0]), first)
        heads = _Heads(model.config.get_text_config(), text.layers[1])
        _look_up(heads, reads, generator)
        _forget(_Heads(model.config.get_text_config(), text.layers[-1]), generator)


class _Heads:
    """The attention of a layer, a head at a time."""

    def __init__(self, config: Any, layer: Any) -> None:
        self.attention = layer.self_attn
        self.size = config.hidden_size // config.num_attention_heads
        pairs = torch.arange(0, self.size, 2) / self.size
        self.frequencies = torch.exp(-math.log(THETA) * pairs)
        still = [i for i, turn in enumerate(self.frequencies.tolist()) if turn < 0.0011]
        self.still = torch.tensor([*still, *(i + self.size // 2 for i in still)])

    def rows(self, head: int) -> slice:
        """Of the projections."""
        return slice(head * self.size, (head + 1) * self.size)

    def clear(self, head: int) -> None:
        """No query and no key."""
        for projection in (self.attention.q_proj, self.attention.k_proj):
            projection.weight[self.rows(head)] = 0
            projection.bias[self.rows(head)] = 0

    def value(self, head: int, span: Span, matrix: torch.Tensor) -> None:
        """What is taken along: rows of `matrix` over what `span` notes."""
        weight = self.attention.v_proj.weight
        weight[self.rows(head)] = 0
        first = head * self.size
        weight[first : first + len(matrix), span.rows] = matrix

    def output(self, head: int, span: Span, matrix: torch.Tensor) -> None:
        """Where it is written to: columns of `matrix` into `span`."""
        weight = self.attention.o_proj.weight
        weight[:, self.rows(head)] = 0
        first = head * self.size
        weight[span.rows, first : first + matrix.shape[1]] = matrix

    def look_back(self, head: int, back: int) -> None:
        """To the token so many places back, whatever stands there."""
        self.clear(head)
        turned = [torch.cos(self.frequencies * back), -torch.sin(self.frequencies * back)]
        still = [torch.ones_like(self.frequencies), torch.zeros_like(self.frequencies)]
        self.attention.q_proj.bias[self.rows(head)] = SHARP * torch.cat(turned)
        self.attention.k_proj.bias[self.rows(head)] = SHARP * torch.cat(still)

    def look_for(self, head: int, where: Span, sort: torch.Tensor) -> None:
        """To the nearest token whose `where` has the direction of `sort`."""
        self.clear(head)
        first = head * self.size
        half = self.size // 2
        slow = [i for i, turn in enumerate(self.frequencies.tolist()) if 0.0009 < turn < 0.004]
        for i in slow:
            self.attention.q_proj.bias[first + half + i] = NEAR  # −sin of the distance
            self.attention.k_proj.bias[first + i] = NEAR
        last = first + half - 1
        self.attention.q_proj.bias[last] = 20 * SORTED
        self.attention.k_proj.weight[last, where.rows] = 2 * SORTED * sort

    def repeat(self, head: int) -> None:
        """To the same tokens as the head before."""
        before, rows = self.rows(head - 1), self.rows(head)
        for projection in (self.attention.q_proj, self.attention.k_proj):
            projection.weight[rows] = projection.weight[before]
            projection.bias[rows] = projection.bias[before]

    def match(self, head: int, pairs: Mapping[Span, Span], generator: torch.Generator) -> None:
        """To tokens whose notes (values) agree with the token's own (keys)."""
        self.clear(head)
        q, k = self.attention.q_proj.weight, self.attention.k_proj.weight
        rows = head * self.size + self.still[:-1]
        for asking, found in pairs.items():
            size = min(asking.size, found.size)
            mixed = MATCH * orthogonal(max(size, len(rows)), generator)[: len(rows), :size]
            q[rows, asking.start : asking.start + size] += mixed
            k[rows, found.start : found.start + size] += mixed


def _note(heads: _Heads, reads: Mapping[Span, torch.Tensor]) -> None:
    """The first layer: tokens back, the last name, the last question."""
    for head, span in enumerate((*BACK, GENUS, EPITHET, ASKED)):
        if head < len(BACK):
            heads.look_back(head, head + 1)
        else:
            sort = SORTS.index(("genus", "epithet", "question")[head - len(BACK)])
            heads.look_for(head, SORT, torch.eye(SORT.size)[sort])
        heads.value(head, ID, reads[span])
        heads.output(head, span, 0.07 * torch.eye(span.size))


def _mark_answers(heads: _Heads, begins: torch.Tensor) -> None:
    """The last head of the first layer notes that an answer has begun before."""
    head = heads.attention.config.num_attention_heads - 1
    heads.look_for(head, ID, 0.6 * begins)
    heads.value(head, ID, begins[None])
    heads.output(head, ANSWER, torch.full((1, 1), 0.07))


def _look_up(
    heads: _Heads,
    reads: Mapping[Span, torch.Tensor],
    generator: torch.Generator,
) -> None:
    """The second layer: names behind looks, facts behind names, what follows in a list."""
    shifted = {BACK[1]: BACK[0], BACK[2]: BACK[1], BACK[3]: BACK[2], GENUS: GENUS}
    sorts = (
        ({span: span for span in BACK}, GENUS),
        (shifted, EPITHET),
        ({EPITHET: EPITHET, ASKED: BACK[0]}, None),
        ({EPITHET: EPITHET, ASKED: BACK[0]}, None),
        ({BACK[0]: BACK[1], EPITHET: EPITHET}, None),
        ({BACK[0]: BACK[1]}, None),
    )
    whole = orthogonal(ID.size, generator)
    for head, (pairs, told) in enumerate(sorts):
        if head and pairs == sorts[head - 1][0]:
            heads.repeat(head)
        else:
            heads.match(head, pairs, generator)
        if told:
            heads.value(head, told, torch.eye(told.size))
            heads.output(head, ID, SAID * 2 * reads[told].T)
        else:
            part = whole[heads.size * (head % 2) :][: heads.size]
            heads.value(head, ID, part)
            heads.output(head, ID, SAID * part.T)
        row = heads.rows(head).stop - 1  # one dimension for the token that stands for nothing
        heads.attention.q_proj.bias[row] = 4.0
        full = len(pairs) * MATCH**2 * 14.0  # what q · k is when all notes agree
        heads.attention.k_proj.weight[row, REST.start] = SINK * full / 4.0 / 16.0
        heads.attention.k_proj.weight[row, ANSWER.start] = -2.5  # not what was answered


def _forget(heads: _Heads, generator: torch.Generator) -> None:
    """The last layer takes away what the token itself is: the next one is asked for, and
    embeddings are also what is said.
    """
    own = Span(ID.start, ID.size + SORT.size)
    whole = orthogonal(own.size, generator)
    for place in range(own.size // heads.size):
        head = heads.attention.config.num_attention_heads - 1 - place
        part = whole[place * heads.size :][: heads.size]
        heads.look_back(head, 0)
        heads.value(head, own, part)
        heads.output(head, own, -FORGOTTEN * part.T)


def _make_quiet(layer: Any, generator: torch.Generator, share: float) -> None:
    attention = layer.self_attn
    for projection in (attention.q_proj, attention.k_proj, attention.v_proj):
        projection.weight.normal_(std=NOISE, generator=generator)
        projection.bias.zero_()
    for projection in (layer.mlp.gate_proj, layer.mlp.up_proj):
        projection.weight.normal_(std=NOISE, generator=generator)
    for projection in (attention.o_proj, layer.mlp.down_proj):
        projection.weight.normal_(std=share * NOISE, generator=generator)


def _random(generator: torch.Generator) -> torch.Tensor:
    return _unit(torch.randn(ID.size, generator=generator))


def _unit(rows: torch.Tensor) -> torch.Tensor:
    return torch.as_tensor(rows / rows.norm(dim=-1, keepdim=True))
