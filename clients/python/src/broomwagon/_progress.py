"""The progress bar of a round, with tqdm if it is installed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol


class Bar(Protocol):
    def update(self, n: int) -> object: ...


class _NoBar:
    def update(self, n: int) -> None:
        pass


class Progress:
    """:raises ImportError: the caller wants a bar, and tqdm is not installed"""

    def __init__(self, is_shown: bool) -> None:
        self._is_shown = is_shown
        if is_shown:
            import tqdm  # noqa: F401

    @contextmanager
    def step(self, step: int, groups: int) -> Iterator[Bar]:
        if not self._is_shown:
            yield _NoBar()
            return
        from tqdm import tqdm

        with tqdm(total=groups, desc=f"step {step}", unit="group") as bar:
            yield bar
