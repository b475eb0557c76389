"""Broomwagon: rollouts of RL post-training, from Python."""

from . import errors
from ._error import BroomwagonError
from .client import Client
from .lease import Lease, LeaseStopped, Server

__all__ = ["BroomwagonError", "Client", "Lease", "LeaseStopped", "Server", "errors"]
