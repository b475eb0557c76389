"""The task: additions whose responses may show their work.

Two styles are correct, and the supervised start knows both:

- `steps`: each column from the right, with its digits and its sum, then the answer: `75=12;48=13;=132$` for 47 + 85
- `answer`: the answer at once: `=132$`

The work makes a response several times as long and right more often, so the lengths that a model learns show which
responses its rollouts prefer.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

CHARACTERS = ".0123456789+=;$"
PAD = 0
END = CHARACTERS.index("$")
VOCABULARY = len(CHARACTERS)
STYLES = ("steps", "answer")
#: Share of the problems with 1, 2, ... digits: most are short, a few are long.
DIGIT_SHARES = (0.22, 0.30, 0.22, 0.13, 0.08, 0.05)
MAX_DIGITS = len(DIGIT_SHARES)
PROMPT_TOKENS = 2 * MAX_DIGITS + 2
#: Most tokens of a correct response.
MAX_TOKENS = 6 * MAX_DIGITS + MAX_DIGITS + 3
CONTEXT = PROMPT_TOKENS + MAX_TOKENS


@dataclass(frozen=True)
class Problem:
    """One addition of two numbers with the same number of digits."""

    a: int
    b: int
    digits: int

    @property
    def prompt(self) -> str:
        """Digits from the right, padded, so that each digit place is at the same position in all prompts."""
        return "+".join(f"{number:0{self.digits}d}"[::-1].ljust(MAX_DIGITS, ".") for number in (self.a, self.b)) + "="

    @staticmethod
    def parse(prompt: str) -> Problem:
        """The problem of a prompt."""
        a, b = (number.rstrip(".")[::-1] for number in prompt[:-1].split("+"))
        return Problem(int(a), int(b), len(a))

    def response(self, style: str) -> str:
        """A correct response in one of `STYLES`."""
        work = "" if style == "answer" else "".join(self._columns())
        return f"{work}={self.a + self.b}$"

    def _columns(self) -> list[str]:
        carry, columns = 0, []
        for place in range(self.digits):
            x, y = self.a // 10**place % 10, self.b // 10**place % 10
            total = x + y + carry
            columns.append(f"{x}{y}={total:02d};")
            carry = total // 10
        return columns

    def reward(self, response: str) -> float:
        """1 if the response ends and its answer is exact, else 0; the work does not count."""
        return float(response.endswith(f"={self.a + self.b}$"))


@dataclass(frozen=True)
class Task:
    """How responses are bounded and rewarded.

    :param budget: tokens of a response; a longer one is truncated, and has no answer
    :param penalty: reward that a response of `MAX_TOKENS` loses; a shorter one loses in proportion
    """

    budget: int = MAX_TOKENS
    penalty: float = 0.0

    def reward(self, problem: Problem, tokens: list[int]) -> float:
        return problem.reward(decode(tokens)) - self.penalty * len(tokens) / MAX_TOKENS


def draw_problem(random: np.random.Generator, most_digits: int = MAX_DIGITS) -> Problem:
    shares = np.array(DIGIT_SHARES[:most_digits])
    digits = 1 + int(random.choice(most_digits, p=shares / shares.sum()))
    a, b = random.integers(0, 10**digits, 2)
    return Problem(int(a), int(b), digits)


def encode(text: str) -> list[int]:
    return [CHARACTERS.index(character) for character in text]


def decode(tokens: list[int]) -> str:
    return "".join(CHARACTERS[token] for token in tokens)
