"""Load the model that a parameter names: a local checkpoint, or an endpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from vrag_kit.checkpoints import DTYPES, Options
from vrag_kit.config import GREEDY, SAMPLING, decoding_of, hardware_of
from vrag_kit.errors import VragError
from vrag_kit.forecast import current_dry_run
from vrag_kit.generation.generator import Generator
from vrag_kit.generation.local.generator import load_local_generator
from vrag_kit.generation.local.loading import LOADING
from vrag_kit.generation.own_answerer import CustomGenerator, load_custom_generator
from vrag_kit.generation.remote.generator import ENDPOINT_OPTIONS, load_endpoint_generator
from vrag_kit.generation.remote.providers import default_endpoint
from vrag_kit.generation.remote.secrets import refuse_password
from vrag_kit.generation.stand_in import DryRunGenerator
from vrag_kit.options import Entry, read_entry
from vrag_kit.plain import JsonView
from vrag_kit.workspace import path as project_path

_HOW = ("name", "decoding", "max_new_tokens", "max_image_side", "max_images")
LOCAL_OPTIONS = (*_HOW, *LOADING, "revision", "max_image_tokens")


def _number(value: object, least: float) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and value >= least  # type: ignore[operator]  # a number, as was just seen


def _whole(value: object, least: int) -> bool:
    return isinstance(value, int) and _number(value, least)


def _count(value: object) -> bool:
    return _whole(value, 1)


def _none_or_more(value: object) -> bool:
    return _whole(value, 0)


def _flag(value: object) -> bool:
    return isinstance(value, bool)


def _text(value: object) -> bool:
    return isinstance(value, str)


def _dollars(value: object) -> bool:
    return _number(value, 0)


def _prices(value: object) -> bool:
    return isinstance(value, list | tuple) and len(value) in (2, 3) and all(map(_dollars, value))


Check = tuple[Callable[[object], bool], str]
_COUNT: Check = (_count, "a whole number of 1 or more")
_MAYBE_NONE: Check = (_none_or_more, "a whole number of 0 or more")
_FLAG: Check = (_flag, "true or false")
_TEXT: Check = (_text, "a text")
_KINDS: dict[str, Check] = {
    "max_new_tokens": _COUNT,
    "max_image_side": _COUNT,
    "max_image_tokens": _COUNT,
    "max_images": _COUNT,
    "concurrency": _COUNT,
    "trust_remote_code": _FLAG,
    "images_first": _FLAG,
    "retries": _MAYBE_NONE,
    "headroom": _MAYBE_NONE,
}
_KINDS["timeout"] = (lambda value: _number(value, 0.1), "a number of seconds")
_KINDS["max_cost"] = (lambda value: _number(value, 0), "a sum of US dollars")
_KINDS["prices"] = (_prices, "two prices, as in [2.5, 10], or a third for tokens in the cache")
_KINDS["body"] = (lambda value: isinstance(value, Mapping), "a mapping of fields")
_KINDS["headers"] = (lambda value: True, "")  # looked at where no value of it is shown
_KINDS["dtype"] = (lambda value: value in DTYPES, f"one of {', '.join(DTYPES)}")
"""Option → (what fits, in words); any other is a text."""
_SHARE: Check = (
    lambda value: _number(value, 0) and not _number(value, 1 + 1e-9),
    "a number from 0 to 1",
)
_DECODING: dict[str, Check] = dict.fromkeys(("top_p", "min_p", "typical_p"), _SHARE)
_DECODING["do_sample"] = _FLAG
_DECODING["temperature"] = (lambda value: _number(value, 0), "a number of 0 or more")
_DECODING["repetition_penalty"] = (lambda value: _number(value, 1e-9), "a number above 0")
_DECODING["top_k"] = (lambda value: _whole(value, -1), "a whole number")  # −1: vLLM's "all"
_DECODING["num_beams"] = _COUNT
_DECODING["no_repeat_ngram_size"] = _MAYBE_NONE


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
    common, machine = decoding_of(decoding), hardware_of(hardware)
    how = {
        "device": machine.device,
        "decoding": common.sampling,
        "max_new_tokens": common.max_new_tokens,
    }
    if (own := load_custom_generator(entry, how)) is not None:
        return _in_forecast(own)
    spec, options = parse_model_entry(entry, decoding)
    model: Generator
    if _is_remote(spec):
        model = load_endpoint_generator(spec, {"concurrency": machine.batch_size, **options})
    else:
        model = load_local_generator(spec, {"device": machine.device, **options})
    return _in_forecast(model)


def parse_model_entry(entry: object, decoding: JsonView | None = None) -> tuple[str, Options]:
    """Return (model, options) of an entry that names no class; nothing is loaded. `decoding`
    applies where the entry has none. The option "decoding" holds the sampling fields that are
    given. Raises `VragError` for an unknown option, for a value of the wrong kind, and for a
    provider's model without its endpoint.
    """
    named = entry.get("model") if isinstance(entry, Mapping) else None
    spec = refuse_password(named if isinstance(named, str) else read_entry(entry, (), "model")[0])
    if (endpoint := default_endpoint(spec)) and not project_path(spec).exists() and "@" not in spec:
        raise VragError(
            f"model {spec!r}: there is no such folder, and the hub's names are <owner>/<name>. Did"
            f" you mean {f'{spec}@{endpoint}'!r}?"
        )
    allowed = ENDPOINT_OPTIONS if _is_remote(spec) else LOCAL_OPTIONS
    _, options = read_entry(entry, allowed, "model")
    given = {
        name: value for name, value in options.items() if value is not None or name == "max_cost"
    }  # null: as if it were not there, but max_cost: null lifts the limit
    common = decoding_of(decoding)
    options = {"decoding": common.sampling, "max_new_tokens": common.max_new_tokens, **given}
    _check(spec, options)
    stated = {name: value for name, value in options["decoding"].items() if value is not None}
    return spec, {**options, "decoding": stated}


def _is_remote(spec: str) -> bool:
    """Whether a name is of a model behind an endpoint."""
    return "@" in spec and not project_path(spec).is_dir()


def _in_forecast(model: Generator) -> Generator:
    """The model, or what takes its place in a forecast."""
    forecast = current_dry_run()
    if forecast is None:
        return model
    if not forecast.asks:
        raise VragError(f"{model.name} is not asked: only what is searched is looked for.")
    stand_in = DryRunGenerator(model, forecast.mark)
    forecast.models.append(stand_in)
    return stand_in


def _check(spec: str, options: Options) -> None:
    """Raise `VragError` for a value of the wrong kind."""
    decoding = options["decoding"]
    if not isinstance(decoding, Mapping):
        raise VragError(
            f"model {spec!r}: decoding is {decoding!r}; expected sampling fields, such as"
            " {temperature: 0}."
        )
    if unknown := sorted(set(decoding) - set(SAMPLING)):
        raise VragError(
            f"model {spec!r}: decoding knows no {unknown[0]!r}; expected {', '.join(SAMPLING)}."
        )
    _check_values(spec, decoding)
    for name, value in options.items():
        fits, words = _KINDS.get(name, _TEXT)
        if name != "decoding" and value is not None and not fits(value):
            raise VragError(f"model {spec!r}: {name} is {value!r}; expected {words}.")


def _check_values(spec: str, decoding: Options) -> None:
    """Raise `VragError` for a field of decoding with a value that no model takes."""
    for name, value in decoding.items():
        fits, words = _DECODING[name]
        if value is not None and not fits(value):
            raise VragError(
                f"model {spec!r}: in its decoding {name} is {value!r}; expected {words}."
            )
    if decoding.get("temperature") == 0 and decoding != GREEDY and not _is_remote(spec):
        raise VragError(
            f"model {spec!r}: in its decoding temperature is 0, at which a model that runs here"
            " decodes greedily; leave out the other fields."
        )
