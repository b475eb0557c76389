"""An ASGI application that forwards each request to another address, and each piece of the answer as it comes."""

from types import SimpleNamespace

TIMEOUT_S = 60
# Headers of an answer that the server of this application adds by itself.
DROPPED = {b"connection", b"transfer-encoding"}


class ForwardingApp:
    def __init__(self, target):
        self.target = target
        # Members of the application that is replaced are not there.
        self.state = SimpleNamespace()

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            return await self._live(receive, send)
        import httpx

        body = b""
        while True:
            message = await receive()
            body += message.get("body", b"")
            if not message.get("more_body"):
                break
        query = scope["query_string"]
        url = self.target + scope["raw_path"].decode() + (f"?{query.decode()}" if query else "")
        headers = [(name, value) for name, value in scope["headers"] if name not in (b"host", b"content-length")]
        # The certificates of the machine are read for each client otherwise.
        async with httpx.AsyncClient(timeout=TIMEOUT_S, verify=False) as client:
            async with client.stream(scope["method"], url, headers=headers, content=body) as answer:
                kept = [(name.lower(), value) for name, value in answer.headers.raw if name.lower() not in DROPPED]
                await send({"type": "http.response.start", "status": answer.status_code, "headers": kept})
                async for piece in answer.aiter_raw():
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body"})

    async def _live(self, receive, send):
        while True:
            message = await receive()
            await send({"type": f"{message['type']}.complete"})
            if message["type"] == "lifespan.shutdown":
                return
