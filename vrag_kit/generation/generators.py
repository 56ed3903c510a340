"""Models that answer prompts: protocol, loading by entry, custom classes, stubs for dry runs."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import TYPE_CHECKING, Literal, Protocol

from vrag_kit.checkpoints import Options
from vrag_kit.config import (
    GREEDY,
    Count,
    Entry,
    EntryOptions,
    Sampling,
    decoding_of,
    hardware_of,
    read_settings,
    split_entry,
)
from vrag_kit.custom import CustomObject, catch_custom_errors, load_custom
from vrag_kit.dry_run import current_dry_run, placeholder_text
from vrag_kit.errors import VragError, short_repr
from vrag_kit.types import PLACEHOLDER, Failure, JsonView, LazyImage, Prompt, Status
from vrag_kit.workspace import path as project_path

if TYPE_CHECKING:
    from vrag_kit.generation.remote.providers import EndpointOptions

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
        return "\n  ".join(
            [
                (
                    f"forecast: {self.calls:,} calls, {self.images:,} images, about {self.tokens:,}"
                    f" tokens of prompt{answers}"
                ),
                *self.notes,
            ]
        )


class Generator(Protocol):
    """A multimodal model that answers prompts.

    Optional are `nests`, valid after `prepare`: whether the shared prefix of prompts in one call,
    such as those of 1-in-k, is computed once; and `at_once`: how many prompts a call gets, whatever
    the batch size.
    """

    name: str
    """The name in tables, file names and colours."""
    fingerprint: str
    """Changes whenever answers may change: weights, processor, precision, endpoint."""
    batched: bool
    """Whether prompts are answered faster in batches; otherwise each is passed alone, so that its
    answer is stored at once.
    """

    concurrency: int
    """How many calls of `generate` may run at once."""
    max_cost: float | None
    """US dollars of this model's calls in one store at which asking stops; None for no limit."""

    @property
    def decoding(self) -> Options:
        """Decoding parameters as they are sent; part of an answer's key."""

    @property
    def sent(self) -> Options:
        """Other data recorded with each answer and not part of its key: the endpoint, the order of
        parts.
        """

    @property
    def deterministic(self) -> bool:
        """Whether a repeated prompt gives the same text, so that samples would be copies."""

    def forecast(self, prompts: Sequence[Prompt], sizes: Mapping[str, Size]) -> CostEstimate:
        """Estimate the cost of prompts; `sizes` has the size of every image by its `where`.

        Sends no request and loads no weights.
        """

    def prepare(self) -> None:
        """Prepare for the first prompt: load the weights, or make one call to the endpoint.

        Raises `VragError` when that fails.
        """

    def generate(self, prompts: Sequence[Prompt], *, sample: int = 0) -> list[Reply]:
        """Return one reply per prompt, in order.

        A prompt that fails gets a reply with a failure; the others are answered all the same.

        Raises `VragError` when further calls cannot succeed, as with a key that is no longer
        accepted.
        """

    def cost(self, tokens: Mapping[str, int]) -> float:
        """Return the cost of these tokens in US dollars; 0 if nothing is paid."""

    def missing(self) -> str:
        """Return what this machine lacks to query the model, such as a key; "" if nothing."""


def prompt_images(prompt: Prompt) -> list[LazyImage]:
    """Return the images of a prompt, in order."""
    return [part for part in _parts(prompt) if not isinstance(part, str)]


def iter_images(prompts: Iterable[Prompt]) -> Iterator[LazyImage]:
    """Iterate over the images of some prompts, in order, with repeats."""
    return chain.from_iterable(prompt_images(prompt) for prompt in prompts)


def prompt_text(prompt: Prompt) -> str:
    """Return the text parts of a prompt, joined in order."""
    return "".join(part for part in _parts(prompt) if isinstance(part, str))


def images_before_text(prompt: Prompt) -> Prompt:
    """Return the prompt with each message's images before its text, both in their order."""
    messages = []
    for message in prompt:
        images = [part for part in message.parts if not isinstance(part, str)]
        texts = [part for part in message.parts if isinstance(part, str)]
        messages.append(replace(message, parts=(*images, *texts)))
    return tuple(messages)


def _parts(prompt: Prompt) -> Iterator[str | LazyImage]:
    return chain.from_iterable(message.parts for message in prompt)


_OURS = ("max_images",)
"""The option of an entry that counts for every model; see `ask_models`."""
_LETTERS = 4
"""Of a token, about."""
_FAILED = 'Reply(raw=None, failure=Failure(Status.ERROR, "why"))'
"""How a class says that a call failed."""
_SILENT = Failure(Status.EMPTY, "the model ended without a word")


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


class CustomGeneratorAdapter:
    """Adapts an object of a custom class to `Generator`."""

    def __init__(self, own: CustomObject) -> None:
        """Wrap `own`, which has the method of `CustomGenerator`."""
        self._made = own.made
        self._counts_samples = "sample" in inspect.signature(own.made.generate).parameters
        self.name = own.name
        self.fingerprint = own.fingerprint
        self.batched = bool(getattr(own.made, "batched", False))
        self.concurrency = 1
        self.max_cost: float | None = None
        self.decoding: Options = {}
        self.sent: Options = {}
        self.deterministic = bool(getattr(own.made, "deterministic", True))

    def forecast(self, prompts: Sequence[Prompt], sizes: Mapping[str, Size]) -> CostEstimate:
        """Count calls and images; estimate tokens from the length of the text alone."""
        letters = sum(len(prompt_text(prompt)) for prompt in prompts)
        images = sum(1 for _ in iter_images(prompts))
        return CostEstimate(calls=len(prompts), images=images, tokens=letters // _LETTERS)

    def prepare(self) -> None:
        """Do nothing: a custom class prepares itself on its first call."""

    def generate(self, prompts: Sequence[Prompt], *, sample: int = 0) -> list[Reply]:
        """Return one reply per prompt. Raises `VragError` for a wrong number of replies, for a
        reply that is neither a text nor a `Reply`, and for an error of the custom class.
        """
        told = {"sample": sample} if self._counts_samples else {}
        hint = f" To record a failed call and go on, return {_FAILED}."
        with catch_custom_errors(f"model {self.name}: generate", self._made, hint=hint):
            found = self._made.generate(prompts, **told)
            replies = [] if isinstance(found, str | bytes | Mapping) else list(found)
        if len(replies) != len(prompts):
            raise VragError(
                f"model {self.name}: generate returned {short_repr(found)} for {len(prompts)}"
                " prompts;"
                " expected a list with a reply for each, in order."
            )
        return [self._reply(each) for each in replies]

    def cost(self, tokens: Mapping[str, int]) -> float:
        """Return 0: the cost is not known."""
        return 0.0

    def missing(self) -> str:
        """Return what the custom class reports as missing; "" if it does not."""
        missing = getattr(self._made, "missing", None)
        return "" if missing is None else str(missing())

    def _reply(self, found: object) -> Reply:
        reply = Reply(raw=found) if isinstance(found, str) else found
        if isinstance(reply, Reply):
            silent = reply.failure is None and not (reply.raw or "").strip()
            return replace(reply, failure=_SILENT) if silent else reply
        raise VragError(
            f"model {self.name}: generate returned {found!r} for a prompt; expected a text, or"
            f" {_FAILED}, of vrag_kit.generation, where a call failed."
        )


def load_custom_generator(
    entry: Entry | CustomGenerator, how: JsonView
) -> CustomGeneratorAdapter | None:
    """Load the model of an entry that names a custom class, or adapt a custom object. Returns None
    for a checkpoint or an endpoint. The class gets those of `how` (device, decoding,
    max_new_tokens) that it has parameters for. Raises as `load_custom`.
    """
    own = load_custom(entry, "model", ("generate",), ours=_OURS, offered=how)
    return None if own is None else CustomGeneratorAdapter(own.require_fingerprint("model"))


_counter = itertools.count(1)


class DryRunGenerator:
    """Replaces a model in a dry run; implements `Generator`."""

    def __init__(self, model: Generator) -> None:
        self.model = model
        """The replaced model, which estimates the cost."""
        self.prompts: list[Prompt] = []
        """The prompts that it received, in order."""
        self.sizes: dict[str, Size] = {}
        """Sizes of the images in them, by `where`."""
        self.may_repair = 0
        """Number of prompts that are asked again if the reply cannot be parsed."""
        self.name = model.name
        self.fingerprint = model.fingerprint
        self.decoding = model.decoding
        self.sent = model.sent
        self.deterministic = model.deterministic
        self.batched = True
        self.at_once = 2000
        self.concurrency = 1
        self.max_cost: float | None = None  # the sum is held against it in the end

    def forecast(self, prompts: Sequence[Prompt], sizes: Mapping[str, Size]) -> CostEstimate:
        """Record image sizes and return zero costs; see `total_cost_estimate`."""
        self.sizes.update(sizes)
        return CostEstimate(calls=0, images=0, tokens=0)

    def total_cost_estimate(self) -> CostEstimate:
        """Return the estimated cost of all recorded prompts."""
        forecast = self.model.forecast(self.prompts, self.sizes)
        if not self.may_repair:
            return forecast
        note = (
            f"not counted: at most {self.may_repair:,} calls more, for replies that cannot be read"
        )
        return replace(forecast, notes=(*forecast.notes, note))

    def prepare(self) -> None:
        """Do nothing: no weights are loaded."""

    def generate(self, prompts: Sequence[Prompt], *, sample: int = 0) -> list[Reply]:
        """Return placeholders about as long as an answer. No two are equal, so that a judge would
        be asked about each.
        """
        self.prompts += prompts
        return [
            Reply(raw=f"Answer: {placeholder_text(next(_counter))}", fields={PLACEHOLDER: True})
            for _ in prompts
        ]

    def cost(self, tokens: Mapping[str, int]) -> float:
        """Return 0: nothing is paid."""
        return 0.0

    def missing(self) -> str:
        """Return "": a dry run needs nothing. The check looks at `model.missing()`."""
        return ""


class LocalOptions(EntryOptions):
    """Options of an entry whose model runs on this machine."""

    device: str | None = None
    """Replaces the device in `hardware`."""
    device_map: str | None = None
    dtype: Literal["auto", "float32", "float16", "bfloat16"] = "auto"
    attention: str | None = None
    quantization: Literal["8bit", "4bit"] | None = None
    trust_remote_code: bool = False
    revision: str | None = None
    max_image_tokens: Count | None = None


def load_generator(
    entry: Entry | CustomGenerator,
    *,
    decoding: JsonView | None = None,
    hardware: JsonView | None = None,
) -> Generator:
    """Load the model that `entry` names, without its weights.

    An entry is "<folder or hub name>", "<model>@<endpoint>", "<package.module>:<Class>"
    (`CustomGenerator`), a mapping {"model": one of them, option: value, …}, or an object of such a
    class. A checkpoint runs locally, through transformers. An endpoint is a name in
    `endpoints.json` ("gpt-4o@openai"), a URL
    ("Qwen/Qwen2.5-VL-7B-Instruct@http://localhost:8000/v1"), or a list of URLs that serve the same
    model ("…@[http://node1:8000/v1, http://node2:8000/v1]"). `decoding` names fields of `Decoding`
    ({"temperature": 0, "max_new_tokens": 16}), `hardware` fields of `Hardware`; an entry's options
    take precedence. A class gets those arguments that it has parameters for. No request is sent
    yet.

    Raises `VragError` for an unknown option, a checkpoint that is missing, and an unknown endpoint.
    What is needed only for new answers (weights, processor, device, key) is checked by the
    generator's `prepare`, so that stored answers can be read without it. In a dry run, returns a
    `DryRunGenerator` instead.
    """
    common = decoding_of(decoding)
    machine = hardware_of(hardware)
    how = {
        "device": machine.device,
        "decoding": common.sampling,
        "max_new_tokens": common.max_new_tokens,
    }
    from vrag_kit.generation.local.generator import load_local_generator
    from vrag_kit.generation.remote.generator import EndpointGenerator
    from vrag_kit.generation.remote.providers import EndpointOptions, find_endpoints

    model: Generator | None = load_custom_generator(entry, how)
    if model is None:
        spec, options = parse_model_entry(entry, decoding)
        if isinstance(options, EndpointOptions):
            endpoints = find_endpoints(spec, options)
            model = EndpointGenerator(endpoints, options, concurrency=machine.batch_size)
        else:
            given = options.model_dump(exclude_none=True)
            model = load_local_generator(spec, {"device": machine.device, **given})
    dry_run = current_dry_run()
    if dry_run is None:
        return model
    if not dry_run.asks:
        raise VragError(f"{model.name} is not called: this dry run records searches only.")
    stub = DryRunGenerator(model)
    dry_run.models.append(stub)
    return stub


def parse_model_entry(
    entry: object, decoding: JsonView | None = None
) -> tuple[str, LocalOptions | EndpointOptions]:
    """Return (model, options) of an entry that names no class; nothing is loaded. The sampling
    fields and `max_new_tokens` of `decoding` apply where the entry has none.

    Raises `VragError` for an unknown option, for a value that does not fit, and for a provider's
    model without its endpoint.
    """
    from vrag_kit.generation.remote.providers import EndpointOptions, default_endpoint
    from vrag_kit.generation.remote.secrets import refuse_password

    spec, given = split_entry(entry, "model")
    refuse_password(spec)
    is_here = project_path(spec).is_dir()
    is_remote = "@" in spec and not is_here
    if "@" not in spec and not is_here and (endpoint := default_endpoint(spec)):
        raise VragError(
            f"model {spec!r}: found no such folder; expected <owner>/<name> on the hub, or"
            f" <model>@<endpoint>. Did you mean {f'{spec}@{endpoint}'!r}?"
        )
    common = decoding_of(decoding)
    defaults = {"decoding": common.sampling, "max_new_tokens": common.max_new_tokens}
    given |= {name: value for name, value in defaults.items() if given.get(name) is None}
    where = f"model {spec!r}"
    kind: type[LocalOptions | EndpointOptions] = EndpointOptions if is_remote else LocalOptions
    options = read_settings(kind, given, where)
    sampling = read_settings(Sampling, options.decoding, f"{where}, decoding").sampling
    if sampling.get("temperature") == 0 and sampling != GREEDY and not is_remote:
        raise VragError(
            f"{where}, decoding: found temperature 0 with other fields; expected it alone, as a"
            " local model then decodes greedily."
        )
    return spec, options.model_copy(update={"decoding": sampling})
