"""Samples and groups as a trainer gets them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

from ._arrays import Logprobs, LossMask, TokenIds, to_logprobs, to_loss_mask, to_token_ids
from ._payloads import Payloads
from ._prompts import PromptLike

if TYPE_CHECKING:
    from .protocol import Segment


@dataclass(frozen=True)
class Sample:
    """One response to a prompt."""

    index: int
    request_id: str
    #: Why generation ended: the model stopped (`stop`), or the budget was used up (`length`).
    finish_reason: Literal["stop", "length"]
    #: Token ids; empty if the engine returned no ids for a part of the tokens. The array has 4 bytes a token and equals
    #: a list of the same ids; `numpy.asarray` reads the array without a copy, `tolist()` makes a list.
    token_ids: TokenIds
    #: Number of tokens of all segments.
    token_count: int
    #: Text of the response; None if a part of the response has no text.
    text: str | None
    #: Log probability of each token; a token without a value from the engine has None (NaN for NumPy). The whole is
    #: None if log probabilities were not requested and there are tokens.
    logprobs: Logprobs | None
    #: The parts that attempts generated, with server and weight version. Turns of an agent loop are separate parts if
    #: their servers or weight versions differ.
    segments: list[Segment]
    #: `engineFields` of the parts: for example `tool_calls`, or the state that an agent loop has stored.
    engine_fields: list[dict[str, Any]]
    #: How much the tail policy prefers samples of about this length; weight the sample by the inverse. None if earlier
    #: steps have trained no such sample.
    acceptance: float | None = None
    #: Weight version of the pool when the round of the results was opened.
    round_weight_version: int = 0
    #: Finish reason as the engine names it; None if it equals `finish_reason`.
    engine_finish_reason: str | None = None
    #: One entry for each of `token_ids`: 1 for a token that the model generated, 0 for a token that the model read, for
    #: example the output of a tool. The array has one byte a token; multiply the loss by `numpy.asarray(loss_mask)`.
    loss_mask: LossMask = field(default_factory=lambda: LossMask("B"))

    @property
    def weight_versions(self) -> tuple[int, int]:
        """The oldest and the newest weight version of the tokens; without tokens, the version of the round."""
        oldest = [segment["weightVersion"] for segment in self.segments]
        newest = [segment.get("toWeightVersion", segment["weightVersion"]) for segment in self.segments]
        return min(oldest, default=self.round_weight_version), max(newest, default=self.round_weight_version)


@dataclass(frozen=True)
class Failure:
    """A group that ended without training."""

    group_id: str
    #: The prompt as the caller gave it; None if this process was not given the prompt and the payload store has
    #: removed the prompt.
    prompt: PromptLike | None
    #: `failed`: a sample failed for good; `dropped`: the group was aborted, its time was over, or Redis has lost it.
    outcome: Literal["failed", "dropped"]
    #: Reason of the failed attempt, for example `engine-rejected`; reason of the abort; `timeout`; or `lost`.
    reason: str
    #: Message of the failed attempt.
    message: str | None
    #: Index of the sample that ended the group; None if no single sample did.
    sample: int | None
    #: Step in which the group was submitted first.
    first_step: int

    def __str__(self) -> str:
        sample = "" if self.sample is None else f" for its sample {self.sample}"
        message = f": {self.message}" if self.message else ""
        return f"group {self.group_id} {self.outcome}{sample} ({self.reason}{message})"


@dataclass(frozen=True)
class Group:
    """The samples of one prompt."""

    id: str
    #: The prompt as the caller gave it. If only an earlier process was given the prompt: as in
    #: `broomwagon.protocol.Prompt`, and the log has a warning.
    prompt: PromptLike
    samples: Sequence[Sample]
    #: Number of times that the group was cut.
    cuts: int
    #: Step in which the group was submitted first.
    first_step: int
    domain: str | None = None
    #: Whether the group must not be trained: its rewards were reported before, and are all equal.
    excluded: bool = False
    #: Why the group ended without training; only with `on_failed="yield"`, and then there are no samples.
    failure: Failure | None = None


async def read_sample(payloads: Payloads, sample: dict[str, Any], round_weight_version: int) -> Sample:
    """Reads the tokens of a `SampleResult`.

    :raises PayloadNotFound: the payload store has lost the tokens
    """
    segments = await payloads.segments_of(sample)
    parts = await payloads.get_all([segment["ref"] for segment in segments])
    texts = [part.get("text") for part in parts]
    has_ids = all(part.get("tokenIds") is not None for part in parts)
    split = [split_segment(segment, part) for segment, part in zip(segments, parts, strict=True)]
    return Sample(
        index=sample["sampleIndex"],
        request_id=sample["requestId"],
        finish_reason=sample["finishReason"],
        token_ids=to_token_ids(token for part in parts for token in part["tokenIds"]) if has_ids else TokenIds("i"),
        token_count=sample["tokenCount"],
        text=None if None in texts else "".join(texts),
        logprobs=_join_logprobs(segments, parts),
        segments=[one for ones in split for one in ones],  # type: ignore[misc]
        # The fields of several turns are stored with the last turn.
        engine_fields=[
            fields
            for ones, part in zip(split, parts, strict=True)
            for fields in [*({} for _ in ones[1:]), part.get("engineFields", {})]
        ],
        acceptance=sample.get("acceptance"),
        round_weight_version=round_weight_version,
        engine_finish_reason=sample.get("engineFinishReason"),
        loss_mask=to_loss_mask(bit for part in parts for bit in _mask(part)) if has_ids else LossMask("B"),
    )


def split_segment(segment: dict[str, Any], payload: dict[str, Any]) -> list[dict[str, Any]]:
    """Splits a segment into segments with one server and one weight version each."""
    if "parts" not in payload:
        return [segment]
    # After a change of weights in mode `keep`, the version of a part is only its oldest version.
    mixed = segment.get("mixedWeightVersion")
    split = []
    for part in payload["parts"]:
        one = {**{name: value for name, value in segment.items() if name != "toWeightVersion"}, **part}
        if mixed is not None and part["weightVersion"] < mixed:
            one["toWeightVersion"] = mixed
        split.append(one)
    return split


def _mask(payload: dict[str, Any]) -> list[int]:
    return payload.get("lossMask") or [1] * len(payload["tokenIds"])


def _join_logprobs(segments: list[dict[str, Any]], parts: list[dict[str, Any]]) -> Logprobs | None:
    """Log probabilities of all tokens; a token of a part without values has None. The whole is None if there are
    tokens, and no part has values."""
    joined: list[float | None] = []
    has_any = False
    for segment, part in zip(segments, parts, strict=True):
        count, values = segment["tokenCount"], part.get("logprobs") or []
        has_any = has_any or bool(values)
        joined += values if len(values) == count else [None] * count
    return to_logprobs(joined) if has_any or not joined else None
