"""Prompts in the order in which they are submitted."""

from __future__ import annotations

import itertools
import logging
import operator
from collections import Counter, deque
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ._arguments import InvalidArgument, is_id

logger = logging.getLogger("broomwagon")

#: A prompt in one of these forms. A mapping may also have `id`, `domain`, and any fields of the caller.
#: - a text, messages of a chat, or token ids
#: - a mapping with `text`, `messages` or `promptTokenIds`, as in `broomwagon.protocol.Prompt`
#: - a mapping with `prompt` or `question`, the columns of many data sets, for a text, messages or token ids
PromptLike = str | Sequence[int] | Sequence[Mapping[str, Any]] | Mapping[str, Any]

#: Maximum successive refused prompts. After more, a process that starts again does not find a submitted prompt.
MAX_REFUSED = 1_000

_WIRE_FIELDS = ("text", "messages", "promptTokenIds", "engineFields")
#: Names of columns with a text, messages or token ids. The first column that a prompt has is used.
_COLUMNS = ("prompt", "question")


class PromptSource:
    """Takes prompts from the data of a trainer, and keeps the prompts that are not trained yet. A prompt without an id
    gets its position as its id, so a trainer that starts again with the same data gives the same ids."""

    def __init__(self) -> None:
        self._given: Iterable[PromptLike] | None = None
        #: Prompts read so far of `_given`, if `_given` is a list.
        self._listed: list[PromptLike] = []
        self._iterators: deque[Iterator[PromptLike]] = deque()
        self._waiting: deque[str] = deque()
        self._items: dict[str, PromptLike] = {}
        #: Position of each prompt of `_items` among all prompts that were given.
        self._numbers: dict[str, int] = {}
        self._position = 0
        #: Number of times that each id of a caller was given.
        self._times_given = Counter[str]()
        self._has_epochs = False
        #: Number of prompts of an earlier trainer that must still be found.
        self._submitted_before = 0
        #: Prompts that an earlier trainer has submitted: their groups may still come.
        self._earlier: dict[str, PromptLike] = {}
        #: Number of groups of the earlier trainer that have not ended.
        self._open_before = 0

    def give(self, prompts: Iterable[PromptLike]) -> None:
        """Sets the prompts of the next rounds. The same object continues where the last round has ended; a list may
        have got more prompts.

        :raises InvalidArgument: `prompts` is one prompt, cannot be iterated over, or is a list with changed prompts
        """
        if isinstance(prompts, (str, bytes, Mapping)) or not _is_iterable(prompts):
            message = f"prompts must be a list or an iterator of prompts, not {_shown(prompts)}"
            raise InvalidArgument(message, field="prompts")
        is_new = prompts is not self._given
        if isinstance(prompts, list):
            # A change of prompts already read would be ignored without a message, so it is an error.
            self._listed = [] if is_new else self._listed
            if len(prompts) < len(self._listed) or not all(map(operator.is_, prompts, self._listed)):
                raise InvalidArgument("prompts was changed after a round had it: give a new list", field="prompts")
            added = prompts[len(self._listed) :]
            self._listed += added
            self._iterators.append(iter(added))
        elif is_new:
            self._iterators.append(iter(prompts))
        self._given = prompts

    def skip(self, count: int, open_count: int) -> None:
        """Notes that an earlier trainer has submitted `count` prompts, and that `open_count` of their groups have not
        ended. `find_submitted` finds these prompts."""
        self._submitted_before = count
        self._open_before = open_count

    async def find_submitted(self, unknown: Callable[[list[str]], Awaitable[list[str]]], ahead: int) -> None:
        """Leaves out the prompts that an earlier trainer has submitted. Must run before other prompts are read.

        Domain quotas skip prompts, but take the prompts of each domain in order. So in each domain, every prompt up to
        the last prompt that Redis knows was submitted or refused.

        :param unknown: returns the ids that Redis does not know. Redis forgets groups trained long ago
        :param ahead: maximum number of prompts that the earlier trainer has read and not submitted
        """
        if self._submitted_before == 0:
            return
        ids, lost = await self._read_submitted(unknown, self._submitted_before + ahead)
        ended, submitted = set[str](), set[str]()
        for group_id in reversed(ids):
            domain = domain_of(self._items[group_id])
            if group_id not in lost or domain in ended:
                ended.add(domain)
                submitted.add(group_id)
        # Prompts of domains in which Redis knows no prompt: the submitted prompts were trained long ago.
        rest = [group_id for group_id in ids if domain_of(self._items[group_id]) not in ended]
        submitted.update(rest[: max(0, self._submitted_before - len(submitted))])
        for group_id in submitted:
            if self._open_before > 0:
                self._earlier[group_id] = self._items[group_id]
            self._forget(group_id)
        self._waiting = deque(group_id for group_id in ids if group_id not in submitted)
        # More submitted prompts come with the next batch, if prompts are given in batches.
        self._submitted_before = max(0, self._submitted_before - len(submitted))

    async def _read_submitted(
        self, unknown: Callable[[list[str]], Awaitable[list[str]]], first: int
    ) -> tuple[list[str], set[str]]:
        """Reads prompts until all submitted prompts are among them, or no more submitted prompts come.

        :param first: number of prompts to read if no prompt was refused
        :returns: ids of all prompts read, and the ids that Redis does not know
        """
        ids: list[str] = []
        lost: set[str] = set()
        for count in itertools.count(first, MAX_REFUSED):
            self.read_ahead(count)
            read = list(self._waiting)[len(ids) :]
            missing = await unknown(read)
            ids += read
            lost.update(missing)
            is_found = len(ids) - len(lost) >= self._submitted_before
            if is_found or len(ids) < count or (count > first and len(missing) == len(read)):
                break
        return ids, lost

    def read_ahead(self, count: int) -> int:
        """Reads prompts until `count` prompts wait, or no prompts are left. Returns the number of waiting prompts."""
        while len(self._waiting) < count and self._iterators:
            for prompt in self._iterators[0]:
                self._add(prompt)
                if len(self._waiting) >= count:
                    break
            else:
                self._iterators.popleft()
        return len(self._waiting)

    def waiting_by_domain(self) -> dict[str, int]:
        """Number of waiting prompts by domain; "" is for prompts without a domain."""
        return dict(Counter(domain_of(self._items[group_id]) for group_id in self._waiting))

    def take(self, count: int, by_domain: dict[str, int] | None = None) -> list[tuple[str, PromptLike]]:
        """The next prompts with their ids.

        :param by_domain: maximum number of prompts of each domain; the method subtracts the prompts that it returns.
            Absent or empty: prompts of any domain
        """
        available = self.read_ahead(count)
        # Replacements may be of any domain.
        ids = self._take_by_domain(count, by_domain) if by_domain else []
        ids = ids or [self._waiting.popleft() for _ in range(min(count, available))]
        return [(group_id, self._items[group_id]) for group_id in ids]

    def _take_by_domain(self, count: int, by_domain: dict[str, int]) -> list[str]:
        ids: list[str] = []
        others: deque[str] = deque()
        for group_id in self._waiting:
            domain = domain_of(self._items[group_id])
            if len(ids) < count and by_domain.get(domain, 0) > 0:
                by_domain[domain] -= 1
                ids.append(group_id)
            else:
                others.append(group_id)
        self._waiting = others
        return ids

    def put_back(self, group_ids: Iterable[str]) -> None:
        """Makes prompts that were taken, and that Redis does not have, available again."""
        self._waiting.extendleft(reversed([group_id for group_id in group_ids if group_id in self._items]))

    def submitted(self) -> list[str]:
        """Ids of prompts that were taken and are not trained."""
        waiting = set(self._waiting)
        return [group_id for group_id in self._items if group_id not in waiting]

    def find(self, group_id: str) -> PromptLike | None:
        """The prompt of a group, as the caller gave it. None if only an earlier trainer was given the prompt."""
        return self._items.get(group_id, self._earlier.get(group_id))

    def ended(self, group_id: str) -> None:
        """Forgets the prompt of a group that is trained, or has failed for good."""
        if self._earlier.pop(group_id, None) is not None:
            self._open_before -= 1
            if self._open_before <= 0:
                self._earlier.clear()
        self._forget(group_id)
        if group_id in self._waiting:
            self._waiting.remove(group_id)

    def refuse(self, group_id: str, error: Exception) -> InvalidArgument:
        """Leaves out a prompt that was taken and cannot be submitted.

        :returns: the error for the caller, with the number of the prompt
        """
        field = f"prompts.{self._numbers[group_id]}"
        self._forget(group_id)
        return InvalidArgument(f"{field} is refused: {error}", field=field)

    def _id_of_epoch(self, given: str) -> str:
        """Makes a new id in each pass over a data set with ids: `row-1`, `row-1#2`. A trainer that starts again with
        the same data makes the same ids."""
        self._times_given[given] += 1
        times = self._times_given[given]
        if times == 2 and not self._has_epochs:
            self._has_epochs = True
            logger.warning("The id %r was given twice: groups of a further epoch are named %s#2", given, given)
        return given if times == 1 else f"{given}#{times}"

    def _forget(self, group_id: str) -> None:
        self._items.pop(group_id, None)
        self._numbers.pop(group_id, None)

    def _add(self, prompt: PromptLike) -> None:
        """:raises InvalidArgument: the prompt is wrong and left out. The next call continues with the next prompt"""
        number = self._position
        field = f"prompts.{number}"
        self._position += 1
        given = prompt.get("id") if isinstance(prompt, Mapping) else None
        group_id = str(number) if given is None else self._id_of_epoch(str(given))
        if group_id in self._items:
            raise InvalidArgument(f"Two prompts have the id {group_id!r}: {field} is the second", field=field)
        if not is_id(group_id):
            rule = "1 to 128 bytes without control characters"
            raise InvalidArgument(f"The id of {field} must be {rule}, not {_shown(given)}", field=field)
        _check(prompt, field)
        self._items[group_id] = prompt
        self._numbers[group_id] = number
        self._waiting.append(group_id)


def _check(prompt: PromptLike, field: str) -> None:
    """:raises InvalidArgument: `prompt` has no form of a prompt. Services check the contents"""
    if isinstance(prompt, str):
        return
    if isinstance(prompt, Mapping):
        column = _column(prompt)
        is_prompt = column is not None or any(name in prompt for name in _WIRE_FIELDS)
        if column is not None and (isinstance(column, Mapping) or not _is_content(column)):
            raise InvalidArgument(f"{field} has a wrong column: {_shown(column)} is no prompt", field=field)
    else:
        is_prompt = _is_content(prompt)
    if not is_prompt:
        names = ", ".join((*_WIRE_FIELDS[:-1], *_COLUMNS))
        message = f"{field} must be a text, messages, token ids, or a mapping with one of them as {names}"
        raise InvalidArgument(f"{message}, not {_shown(prompt)}", field=field)


def _is_content(value: object) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, (bytes, bytearray))


def _column(prompt: Mapping[str, Any]) -> Any:
    """The value of the column `prompt` or `question`; None without these columns, or with a field of the protocol."""
    if any(name in prompt for name in _WIRE_FIELDS[:-1]):
        return None
    return next((prompt[name] for name in _COLUMNS if name in prompt), None)


def _is_iterable(value: object) -> bool:
    # `iter` also accepts a data set that has only `__getitem__`.
    try:
        iter(value)  # type: ignore[call-overload]
    except TypeError:
        return False
    return True


def _shown(value: object) -> str:
    return f"{type(value).__name__} {repr(value)[:60]}"


def domain_of(prompt: PromptLike) -> str:
    """The domain of a prompt; "" without a domain."""
    return str(prompt.get("domain") or "") if isinstance(prompt, Mapping) else ""


def wire_prompt(prompt: PromptLike) -> dict[str, Any]:
    """The prompt in the form of the protocol."""
    if isinstance(prompt, str):
        return {"text": prompt}
    if isinstance(prompt, Mapping):
        column = _column(prompt)
        fields = {name: prompt[name] for name in _WIRE_FIELDS if name in prompt}
        return fields if column is None else {**fields, **wire_prompt(column)}
    if prompt and isinstance(prompt[0], Mapping):
        return {"messages": list(prompt)}
    return {"promptTokenIds": list(prompt)}
