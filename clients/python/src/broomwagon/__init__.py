"""Broomwagon: rollouts of RL post-training, from Python."""

from . import errors
from ._error import BroomwagonError
from .attempt import Attempt
from .client import Client
from .lease import Lease, LeaseStopped, Server
from .results import Group, Sample
from .trainer import Rollout, StepFailed
from .worker import Worker

__all__ = [
    "Attempt",
    "BroomwagonError",
    "Client",
    "Group",
    "Lease",
    "LeaseStopped",
    "Rollout",
    "Sample",
    "Server",
    "StepFailed",
    "Worker",
    "errors",
]
