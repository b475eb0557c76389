"""TLS to NATS, by the settings of the services."""

from __future__ import annotations

import os
import ssl
from typing import Any

from ._arguments import InvalidArgument


def tls_options(url: str) -> dict[str, Any]:
    """Parameters of nats-py from `build_context` and `NATS_TLS_SERVER_NAME`; empty without tls://.

    :raises InvalidArgument: as `build_context`
    """
    if not url.startswith("tls://"):
        return {}
    name = os.environ.get("NATS_TLS_SERVER_NAME")
    return {"tls": build_context(), **({"tls_hostname": name} if name else {})}


def build_context() -> ssl.SSLContext:
    """Reads the files of `NATS_TLS_CA`, `NATS_TLS_CERT` and `NATS_TLS_KEY`.

    :raises InvalidArgument: a file cannot be read, or has no certificate or key; `field` is the setting of the file
    """
    setting = "NATS_TLS_CA"
    try:
        context = ssl.create_default_context(cafile=os.environ.get("NATS_TLS_CA"))
        if certificate := os.environ.get("NATS_TLS_CERT"):
            setting = "NATS_TLS_CERT"
            context.load_cert_chain(certificate, os.environ.get("NATS_TLS_KEY"))
    except OSError as error:
        raise InvalidArgument(f"{setting} cannot be used: {error}", field=setting) from error
    return context
