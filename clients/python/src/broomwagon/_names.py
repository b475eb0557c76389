"""Names of fields in mappings of callers: in camelCase as in the protocol, or in snake_case."""

from __future__ import annotations

import re
from collections.abc import Mapping
from difflib import get_close_matches
from functools import lru_cache
from typing import Any, cast

from ._arguments import InvalidArgument, check_number
from .protocol import SamplingParameters

#: Names that other programs have for a parameter of `Client.rollout`.
_PARAMETERS = {"maxTokens": "max_tokens", "maxNewTokens": "max_tokens", "n": "samples", "numSamples": "samples"}


@lru_cache
def _names(kind: type) -> frozenset[str]:
    return frozenset(kind.__annotations__)


def to_protocol(field: str, given: object, kind: type) -> dict[str, Any]:
    """The fields of a TypedDict of the protocol, also from names in snake_case.

    :param field: the argument, for errors
    :param kind: the TypedDict
    :raises InvalidArgument: `given` is no mapping, or has an unknown name, or a name twice
    """
    if not isinstance(given, Mapping):
        raise InvalidArgument(f"{field} must be a mapping, not {type(given).__name__}", field=field)
    known = _names(kind)
    fields: dict[str, Any] = {}
    for name, value in given.items():
        if not isinstance(name, str):
            raise InvalidArgument(f"{field} must have texts as names, not {name!r}", field=field)
        wire = name if name in known else re.sub(r"_+([a-z0-9])", lambda found: found[1].upper(), name)
        if wire not in known:
            raise InvalidArgument(f"{field} has no {name!r}: {_advice(wire, known)}", field=f"{field}.{name}")
        if wire in fields:
            raise InvalidArgument(f"{field} has {wire} twice, once as {name}", field=f"{field}.{name}")
        fields[wire] = value
    return fields


def _advice(name: str, known: frozenset[str]) -> str:
    if parameter := _PARAMETERS.get(name):
        return f"pass {parameter}= to the rollout"
    if close := get_close_matches(name, known, 1):
        return f"did you mean {close[0]}?"
    return f"it may have {', '.join(sorted(known))}"


def check_sampling(sampling: SamplingParameters | Mapping[str, Any] | None) -> SamplingParameters | None:
    """Sampling parameters with the names of the protocol. Services check the other values.

    :raises InvalidArgument: a name is unknown, or the temperature negative; `field` is for example
        `sampling.temperature`
    """
    if sampling is None:
        return None
    fields = to_protocol("sampling", sampling, SamplingParameters)
    if "temperature" in fields:
        fields["temperature"] = check_number("sampling.temperature", fields["temperature"])
    return cast("SamplingParameters", fields)
