"""Credentials of NATS come from the file of NATS_CREDS, which may be renewed while a process runs."""

from __future__ import annotations

import base64
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import until

from broomwagon import Client
from broomwagon._arguments import InvalidArgument

nkeys = pytest.importorskip("nkeys")


def make_credentials(account_seed: str, ends_in: int) -> str:
    """Contents of a `.creds` file of a new user, whose JWT ends after so many seconds."""
    seed = nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_USER)
    account, user = nkeys.from_seed(bytearray(account_seed.encode())), nkeys.from_seed(bytearray(seed))
    subject, issuer, now = user.public_key.decode(), account.public_key.decode(), int(time.time())
    permissions = {"pub": {}, "sub": {}, "subs": -1, "data": -1, "payload": -1, "type": "user", "version": 2}
    ids = {"jti": subject, "iat": now - 5, "exp": now + ends_in, "iss": issuer, "sub": subject, "name": subject}

    def encode(data: bytes) -> str:
        return base64.urlsafe_b64encode(data).decode().rstrip("=")

    head = encode(json.dumps({"typ": "JWT", "alg": "ed25519-nkey"}).encode())
    body = f"{head}.{encode(json.dumps({**ids, 'nats': permissions}).encode())}"
    jwt = f"-----BEGIN NATS USER JWT-----\n{body}.{encode(account.sign(body.encode()))}\n------END NATS USER JWT------"
    return f"{jwt}\n\n-----BEGIN USER NKEY SEED-----\n{seed.decode()}\n------END USER NKEY SEED------\n"


@pytest.fixture
def account_seed() -> str:
    """The key of an account of the server of NATS_URL."""
    seed = os.environ.get("TEST_ACCOUNT_SEED")
    return seed or pytest.skip("NATS_URL has no account by JWT")


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], object]:
    """Writes the file of NATS_CREDS, which is not there before."""
    file = tmp_path / "user.creds"
    monkeypatch.setenv("NATS_CREDS", str(file))
    return file.write_text


async def test_a_file_is_read_for_each_connection(
    account_seed: str, write: Callable[[str], object], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("broomwagon._link.FIRST_EXPLANATION", 0.0)
    monkeypatch.setattr("broomwagon._link.EXPLAIN_EVERY", 0.1)
    write(make_credentials(account_seed, 3))
    async with Client() as client:
        nats = client._connected._nats
        assert nats.is_connected

        async def says(text: str) -> bool:
            return text in caplog.text

        await until(lambda: says("check NATS_URL, NATS_USER and NATS_PASSWORD, or NATS_CREDS"))
        assert not nats.is_connected
        write("half of a file")
        await until(lambda: says("the credentials of the connection before are used"))
        write(make_credentials(account_seed, 3600))

        async def is_connected() -> bool:
            return nats.is_connected

        await until(is_connected)


async def test_a_jwt_of_another_account_is_refused_with_the_reason(
    account_seed: str, write: Callable[[str], object]
) -> None:
    other = nkeys.encode_seed(os.urandom(32), nkeys.PREFIX_BYTE_ACCOUNT).decode()
    write(make_credentials(other, 3600))
    with pytest.raises(Exception, match=r"(?i)authorization"):
        await Client(connect_timeout=1).connect()


@pytest.mark.short
async def test_a_file_without_credentials_fails_the_start(write: Callable[[str], object]) -> None:
    jwt = "-----BEGIN NATS USER JWT-----\na.b.c\n------END NATS USER JWT------\n"
    seed = "-----BEGIN USER NKEY SEED-----\nSUnoseed\n------END USER NKEY SEED------\n"
    for content in (None, "", jwt, seed, jwt + seed):
        if content is not None:
            write(content)
        with pytest.raises(InvalidArgument, match="NATS_CREDS cannot be used") as caught:
            await Client().connect()
        assert caught.value.field == "NATS_CREDS"


@pytest.mark.short
async def test_a_missing_package_is_named(write: Callable[[str], object], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nkeys", None)
    with pytest.raises(InvalidArgument, match=r"pip install 'broomwagon\[creds\]'"):
        await Client().connect()
