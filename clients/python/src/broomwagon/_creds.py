"""Credentials of NATS from a `.creds` file, by the setting of the services."""

from __future__ import annotations

import base64
import logging
import os
import re
from pathlib import Path
from typing import Any

from ._arguments import InvalidArgument

logger = logging.getLogger("broomwagon")

SETTING = "NATS_CREDS"
_JWT = re.compile(rb"BEGIN NATS USER JWT-+\s+([\w.-]+)\s")
_SEED = re.compile(rb"BEGIN USER NKEY SEED-+\s+(\w+)\s")


def creds_options() -> dict[str, Any]:
    """Parameters of nats-py for the file of `NATS_CREDS`; empty without the setting.

    :raises InvalidArgument: the file cannot be read, or has no credentials, or the package nkeys is not installed
    """
    path = os.environ.get(SETTING)
    if not path:
        return {}
    credentials = CredentialsFile(path)
    return {"signature_cb": credentials.sign, "user_jwt_cb": credentials.jwt}


class CredentialsFile:
    """A file that is read for each connection, because credentials are renewed while a process runs. nats-py can read
    such a file too, but never dials again after a read error, and never stops reading a file without a JWT."""

    def __init__(self, path: str) -> None:
        """:raises InvalidArgument: as `creds_options`"""
        self._path = path
        self._jwt, self._keys = self._read()

    def sign(self, nonce: str) -> bytes:
        """Signs the challenge of a server. nats-py calls `sign` for each connection, before `jwt`."""
        try:
            self._jwt, self._keys = self._read()
        except InvalidArgument as error:
            logger.warning("%s; the credentials of the connection before are used", error)
        return base64.b64encode(self._keys.sign(nonce.encode()))

    def jwt(self) -> bytes:
        """The JWT of the user."""
        return self._jwt

    def _read(self) -> tuple[bytes, Any]:
        try:
            import nkeys
        except ImportError as error:
            advice = f"{SETTING} needs the package nkeys: pip install 'broomwagon[creds]'"
            raise InvalidArgument(advice, field=SETTING) from error
        try:
            content = Path(self._path).read_bytes()
            jwt, seed = _JWT.search(content), _SEED.search(content)
            if jwt is None or seed is None:
                raise ValueError("the file has no JWT or no seed of a user")
            return jwt[1], nkeys.from_seed(bytearray(seed[1]))
        except (OSError, ValueError, nkeys.NkeysError) as error:
            raise InvalidArgument(f"{SETTING} cannot be used: {error!r}", field=SETTING) from error
