"""Load the model that a parameter names: a local checkpoint, or an endpoint."""

from __future__ import annotations

from typing import Literal

from vrag_kit.config import (
    GREEDY,
    Count,
    EntryOptions,
    Sampling,
    decoding_of,
    hardware_of,
    read_settings,
)
from vrag_kit.errors import VragError
from vrag_kit.forecast import current_dry_run
from vrag_kit.generation.generator import Generator
from vrag_kit.generation.local.generator import load_local_generator
from vrag_kit.generation.own_answerer import CustomGenerator, load_custom_generator
from vrag_kit.generation.remote.generator import EndpointGenerator
from vrag_kit.generation.remote.providers import (
    EndpointOptions,
    default_endpoint,
    find_endpoints,
)
from vrag_kit.generation.remote.secrets import refuse_password
from vrag_kit.generation.stand_in import DryRunGenerator
from vrag_kit.options import Entry, split_entry
from vrag_kit.plain import JsonView
from vrag_kit.workspace import path as project_path


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
    model: Generator | None = load_custom_generator(entry, how)
    if model is None:
        spec, options = parse_model_entry(entry, decoding)
        if isinstance(options, EndpointOptions):
            endpoints = find_endpoints(spec, options)
            model = EndpointGenerator(endpoints, options, concurrency=machine.batch_size)
        else:
            given = options.model_dump(exclude_none=True)
            model = load_local_generator(spec, {"device": machine.device, **given})
    forecast = current_dry_run()
    if forecast is None:
        return model
    if not forecast.asks:
        raise VragError(f"{model.name} is not asked: only what is searched is looked for.")
    stand_in = DryRunGenerator(model, forecast.mark)
    forecast.models.append(stand_in)
    return stand_in


def parse_model_entry(
    entry: object, decoding: JsonView | None = None
) -> tuple[str, LocalOptions | EndpointOptions]:
    """Return (model, options) of an entry that names no class; nothing is loaded. The sampling
    fields and `max_new_tokens` of `decoding` apply where the entry has none.

    Raises `VragError` for an unknown option, for a value that does not fit, and for a provider's
    model without its endpoint.
    """
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
