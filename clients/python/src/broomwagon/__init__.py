"""Broomwagon: rollouts of RL post-training, from Python."""

from . import errors
from ._arguments import InvalidArgument
from ._arrays import Logprobs, LossMask, TokenIds
from ._error import BroomwagonError
from ._failures import GroupFailed
from ._session import WorkerIdInUse
from ._step import StepFailed
from .attempt import Attempt
from .client import Client
from .lease import Lease, LeaseStopped, Server
from .protocol import SamplingParameters, TailPolicy, TailPolicyName
from .results import Failure, Group, Sample
from .trainer import Rollout
from .weights import Weights
from .worker import Worker

#: `npm run release` writes this version.
__version__ = "0.1.0"

__all__ = [
    "Attempt",
    "BroomwagonError",
    "Client",
    "Failure",
    "Group",
    "GroupFailed",
    "InvalidArgument",
    "Lease",
    "LeaseStopped",
    "Logprobs",
    "LossMask",
    "Rollout",
    "Sample",
    "SamplingParameters",
    "Server",
    "StepFailed",
    "TailPolicy",
    "TailPolicyName",
    "TokenIds",
    "Weights",
    "Worker",
    "WorkerIdInUse",
    "__version__",
    "errors",
]
