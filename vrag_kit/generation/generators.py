"""Models that answer prompts: protocol, loading by entry, custom classes, stubs for dry runs."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from types import MappingProxyType
from typing import Protocol

from vrag_kit.checkpoints import Options
from vrag_kit.config import (
    GREEDY,
    CustomObject,
    Decoding,
    Entry,
    Sampling,
    catch_custom_errors,
    load_custom,
    read_entry,
    read_settings,
)
from vrag_kit.dry_run import current_dry_run
from vrag_kit.errors import VragError, short_repr
from vrag_kit.files import project_path
from vrag_kit.generation.local.loading import LocalOptions
from vrag_kit.generation.remote.providers import (
    EndpointOptions,
    default_endpoint,
    find_endpoints,
)
from vrag_kit.generation.remote.secrets import refuse_password
from vrag_kit.types import PLACEHOLDER, Failure, Json, JsonView, LazyImage, Prompt, Status
from vrag_kit.workspace import Workspace

Size = tuple[int, int]
"""(width, height) of an upright image, in pixels."""
PROBABILITY = "probability"
"""Field of a reply: the model's probability of its own text, in [0, 1]."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """A model's reply to one prompt, before it becomes an `Answer`."""

    raw: str | None
    """The generated text; None when there is none."""
    failure: Failure | None = None
    """Why there is no usable answer; None when there is one."""
    fields: Options = field(default_factory=dict)
    """Further data to store, such as the resolution at which each image was seen."""
    tokens: Mapping[str, int] = field(default_factory=dict)
    """Token counts: prompt, completion, visual."""

    @classmethod
    def failed(cls, status: Status, why: str) -> Reply:
        """Return the reply of a call that failed."""
        return cls(raw=None, failure=Failure(status, why))

    def __post_init__(self) -> None:
        """Mark a reply without any text as a failure."""
        if self.failure is None and not (self.raw or "").strip():
            failure = Failure(Status.EMPTY, "the model ended without a word")
            object.__setattr__(self, "failure", failure)


@dataclass(frozen=True, slots=True, kw_only=True)
class CostEstimate:
    """The estimated cost of asking some prompts, computed before the first call."""

    calls: int
    images: int
    tokens: int
    """Tokens of all prompts; an estimate if the endpoint counts them."""
    notes: tuple[str, ...] = ()
    """Notes to read before the run: the longest prompt, memory, money, and prompts that do not fit.
    """
    misfits: int = 0
    """Prompts that do not fit into the model's context."""
    cost: float | None = None
    """Estimated US dollars; None if no price is known."""
    uncounted: str = ""
    """What the cost leaves out: "pictures", or "calls" where no price is known."""
    answer_tokens: int = 0
    """Expected tokens of all answers; 0 if there is no estimate."""
    hours: float = 0.0
    """Estimated hours; 0 if the duration of a call is not known."""

    def __str__(self) -> str:
        answers = f" and {self.answer_tokens:,} of answers" if self.answer_tokens else ""
        calls = f"{self.calls:,} calls, {self.images:,} images"
        first = f"forecast: {calls}, about {self.tokens:,} tokens of prompt{answers}"
        return "\n  ".join([first, *self.notes])


class Generator(Protocol):
    """A multimodal model that answers prompts; classes of models inherit its defaults."""

    name: str
    """The name in tables, file names and colours."""
    fingerprint: str
    """Changes whenever answers may change: weights, processor, precision, endpoint."""
    decoding: Options = MappingProxyType({})
    """Decoding parameters as they are sent; part of an answer's key."""
    sent: Options = MappingProxyType({})
    """Other data recorded with each answer, such as the endpoint."""
    deterministic: bool
    """Whether a repeated prompt gives the same text, so that samples would be copies."""
    batched: bool = True
    """Whether prompts are answered faster in batches; otherwise each is passed alone, so that its
    answer is stored at once.
    """
    max_batch: int | None = None
    """Prompts per call, whatever the batch size in `hardware`; None for that one."""
    concurrency: int = 1
    """How many calls of `generate` may run at once."""
    max_cost: float | None = None
    """US dollars of this model's calls in one store at which asking stops; None for no limit."""

    @property
    def shares_prefixes(self) -> bool:
        """Whether the shared prefix of prompts in one call, such as those of 1-in-k, is computed
        once; valid after `prepare`.
        """
        return False

    def estimate_cost(self, prompts: Sequence[Prompt], sizes: Mapping[str, Size]) -> CostEstimate:
        """Estimate the cost of prompts; `sizes` has the size of every image by its `where`.

        Sends no request and loads no weights.
        """

    def prepare(self) -> None:
        """Prepare for the first prompt: load the weights, or make one call to the endpoint.

        Raises `VragError` when that fails.
        """
        return

    def generate(self, prompts: Sequence[Prompt], *, sample: int = 0) -> list[Reply]:
        """Return one reply per prompt, in order.

        A prompt that fails gets a reply with a failure; the others are answered all the same.

        Raises `VragError` when further calls cannot succeed, as with a key that is no longer
        accepted.
        """

    def cost(self, tokens: Mapping[str, int]) -> float:
        """Return the cost of these tokens in US dollars; 0 if nothing is paid."""
        return 0.0

    def missing(self) -> str:
        """Return what this machine lacks to query the model, such as a key; "" if nothing."""
        return ""


def prompt_images(prompt: Prompt) -> list[LazyImage]:
    """Return the images of a prompt, in order."""
    return [part for part in _parts(prompt) if not isinstance(part, str)]


def iter_images(prompts: Iterable[Prompt]) -> Iterator[LazyImage]:
    """Iterate over the images of some prompts, in order, with repeats."""
    return chain.from_iterable(map(prompt_images, prompts))


def prompt_text(prompt: Prompt) -> str:
    """Return the text parts of a prompt, joined in order."""
    return "".join(part for part in _parts(prompt) if isinstance(part, str))


def images_before_text(prompt: Prompt) -> Prompt:
    """Return the prompt with each message's images before its text, both in their order."""
    return tuple(
        replace(message, parts=tuple(sorted(message.parts, key=lambda part: isinstance(part, str))))
        for message in prompt
    )


def _parts(prompt: Prompt) -> Iterator[str | LazyImage]:
    return chain.from_iterable(message.parts for message in prompt)


_FAILED = 'Reply(raw=None, failure=Failure(Status.ERROR, "why"))'
"""How a class says that a call failed."""
_STUB = "nobody was asked, these words take the place of an answer and are about as long as one"
_COUNTER = itertools.count(1)


class CustomGenerator(Protocol):
    """The protocol of a custom class that answers prompts.

    Optional are `name`, `fingerprint`, `batched` (true: `generate` gets several prompts at once;
    false by default), `deterministic` (false: samples of one prompt differ, and a parameter
    `sample` of `generate` gets the sample's number; true by default), and `missing()`: what this
    machine lacks to query it, "" for nothing.
    """

    def generate(self, prompts: Sequence[Prompt]) -> Sequence[str | Reply]:
        """Return a text for each prompt, or a `Reply`, which can record a failed call.

        An empty text, "", counts as an incorrect answer.
        """


class CustomGeneratorAdapter(Generator):
    """Adapts an object of a custom class to `Generator`."""

    def __init__(self, own: CustomObject) -> None:
        """Wrap `own`, which has the method of `CustomGenerator`."""
        self._made = own.made
        self._counts_samples = "sample" in inspect.signature(own.made.generate).parameters
        self.name = own.name
        self.fingerprint = own.fingerprint
        self.batched = bool(getattr(own.made, "batched", False))
        self.deterministic = bool(getattr(own.made, "deterministic", True))

    def estimate_cost(self, prompts: Sequence[Prompt], sizes: Mapping[str, Size]) -> CostEstimate:
        """Count calls and images; estimate tokens as a quarter of the text's characters."""
        characters = sum(len(prompt_text(prompt)) for prompt in prompts)
        images = sum(1 for _ in iter_images(prompts))
        return CostEstimate(calls=len(prompts), images=images, tokens=characters // 4)

    def generate(self, prompts: Sequence[Prompt], *, sample: int = 0) -> list[Reply]:
        """Return one reply per prompt. Raises `VragError` for a wrong number of replies, for a
        reply that is neither a text nor a `Reply`, and for an error of the custom class.
        """
        given = {"sample": sample} if self._counts_samples else {}
        hint = f" To record a failed call and go on, return {_FAILED}."
        with catch_custom_errors(f"model {self.name}: generate", self._made, hint=hint):
            found = self._made.generate(prompts, **given)
            replies = [] if isinstance(found, str | bytes | Mapping) else list(found)
        if len(replies) != len(prompts):
            returned = f"generate returned {short_repr(found)} for {len(prompts)} prompts"
            raise VragError(f"model {self.name}: {returned}; expected a list of as many replies.")
        return [self._reply(each) for each in replies]

    def missing(self) -> str:
        """Return what the custom class reports as missing; "" if it does not."""
        return str(getattr(self._made, "missing", str)())

    def _reply(self, found: object) -> Reply:
        reply = Reply(raw=found) if isinstance(found, str) else found
        if isinstance(reply, Reply):
            return reply
        returned = f"generate returned {found!r} for a prompt"
        raise VragError(f"model {self.name}: {returned}; expected a text, or {_FAILED}.")


class DryRunGenerator(Generator):
    """Replaces a model in a dry run; `model.estimate_cost(prompts, sizes)` is what it costs."""

    max_batch = 2000

    def __init__(self, model: Generator) -> None:
        self.model = model
        """The replaced model, which estimates the cost."""
        self.prompts: list[Prompt] = []
        """The prompts that it received, in order."""
        self.sizes: dict[str, Size] = {}
        """Sizes of the images in them, by `where`."""
        self.name = model.name
        self.fingerprint = model.fingerprint
        self.decoding = model.decoding
        self.sent = model.sent
        self.deterministic = model.deterministic

    def estimate_cost(self, prompts: Sequence[Prompt], sizes: Mapping[str, Size]) -> CostEstimate:
        """Record image sizes and return zero costs: all prompts are counted in the end."""
        self.sizes.update(sizes)
        return CostEstimate(calls=0, images=0, tokens=0)

    def generate(self, prompts: Sequence[Prompt], *, sample: int = 0) -> list[Reply]:
        """Return placeholders about as long as an answer. No two are equal, so that a judge would
        be asked about each; all have one length, so that token counts do not depend on earlier
        runs.
        """
        self.prompts += prompts
        texts = [f"Answer: {_STUB} ({next(_COUNTER):08d})" for _ in prompts]
        return [Reply(raw=text, fields={PLACEHOLDER: True}) for text in texts]


class _UnavailableGenerator(DryRunGenerator):
    """Replaces a model that a dry run cannot load; its costs are unknown."""

    fingerprint = "unavailable"
    deterministic = False

    def __init__(self, entry: object) -> None:
        named = entry.get("name") or entry.get("model") if isinstance(entry, Mapping) else entry
        self.name = str(named)


def load_generator(
    entry: Entry | CustomGenerator,
    *,
    decoding: JsonView | None = None,
    at: Workspace | None = None,
) -> Generator:
    """Load the model that `entry` names, without its weights.

    An entry is "<folder or hub name>", "<model>@<endpoint>", "<package.module>:<Class>"
    (`CustomGenerator`), a mapping {"model": one of them, option: value, …}, or an object of such a
    class. A checkpoint runs locally, through transformers. An endpoint is a name in
    `endpoints.json` ("gpt-4o@openai"), a URL
    ("Qwen/Qwen2.5-VL-7B-Instruct@http://localhost:8000/v1"), or a list of URLs that serve the same
    model ("…@[http://node1:8000/v1, http://node2:8000/v1]"). `decoding` names fields of `Decoding`
    ({"temperature": 0, "max_new_tokens": 16}); an entry's options take precedence. A class gets
    those arguments that it has parameters for. No request is sent yet.

    Raises `VragError` for an unknown option, a checkpoint that is missing, and an unknown endpoint.
    What is needed only for new answers (weights, processor, device, key) is checked by the
    generator's `prepare`, so that stored answers can be read without it. In a dry run, returns a
    `DryRunGenerator` instead, also for a model that cannot be loaded, whose error is recorded.
    """
    dry_run = current_dry_run()
    if dry_run is None:
        return _open_generator(entry, decoding, at)
    if not dry_run.asks:
        raise VragError("no model is called: this dry run records searches only.")
    try:
        model = _open_generator(entry, decoding, at)
    except VragError as error:
        dry_run.missing[str(error)] = None
        return DryRunGenerator(_UnavailableGenerator(entry))
    if missing := model.missing():
        dry_run.missing[f"model {model.name!r}: {missing}"] = None
    stub = DryRunGenerator(model)
    dry_run.models.append(stub)
    return stub


def _open_generator(
    entry: Entry | CustomGenerator, decoding: JsonView | None, at: Workspace | None
) -> Generator:
    from vrag_kit.generation.local.generator import LocalGenerator
    from vrag_kit.generation.remote.generator import EndpointGenerator

    machine = at or Workspace()
    offered = {"device": machine.device, **_defaults(decoding)}
    custom = load_custom(entry, "model", ("generate",), ours=("max_images",), offered=offered)
    if custom is not None:
        return CustomGeneratorAdapter(custom.require_fingerprint("model"))
    spec, options = parse_model_entry(entry, decoding)
    if isinstance(options, EndpointOptions):
        endpoints = find_endpoints(spec, options)
        return EndpointGenerator(endpoints, options, concurrency=machine.batch_size)
    return LocalGenerator(spec, options, machine.device)


def parse_model_entry(
    entry: object, decoding: JsonView | None = None
) -> tuple[str, LocalOptions | EndpointOptions]:
    """Return (model, options) of an entry that names no class; nothing is loaded. The sampling
    fields and `max_new_tokens` of `decoding` apply where the entry has none.

    Raises `VragError` for an unknown option, for a value that does not fit, and for a provider's
    model without its endpoint.
    """
    spec, given = read_entry(entry, "model")
    refuse_password(spec)
    is_here = project_path(spec).is_dir()
    is_remote = "@" in spec and not is_here
    if "@" not in spec and not is_here and (endpoint := default_endpoint(spec)):
        hint = f"Did you mean '{spec}@{endpoint}'?"
        raise VragError(f"model {spec!r}: found no such folder; expected an endpoint. {hint}")
    missing = {n: v for n, v in _defaults(decoding).items() if given.get(n) is None}
    where = f"model {spec!r}"
    kind: type[LocalOptions | EndpointOptions] = EndpointOptions if is_remote else LocalOptions
    options = read_settings(kind, given | missing, where)
    sampling = read_settings(Sampling, options.decoding, f"{where}, decoding").sampling
    if sampling.get("temperature") == 0 and sampling != GREEDY and not is_remote:
        raise VragError(f"{where}, decoding: temperature 0 decodes greedily; expected it alone.")
    return spec, options.model_copy(update={"decoding": sampling})


def _defaults(decoding: JsonView | None) -> Json:
    """The options that the parameter `decoding` gives to every model."""
    common = read_settings(Decoding, decoding or {}, "decoding")
    return {"decoding": common.sampling, "max_new_tokens": common.max_new_tokens}
