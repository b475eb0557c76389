"""A plugin of pytest by which tests of trainers reach their mock engines through a gateway, without a change of the
tests.

GATEWAY_URL is the address that takes the place of a mock engine; its /register takes the address of a mock engine.
"""

import json
import os
import sys
import urllib.request

import pytest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "trainers"))
import absent_packages  # noqa: E402
import forwarding_app  # noqa: E402
import miles_stand_ins  # noqa: E402

GATEWAY = os.environ["GATEWAY_URL"]
absent_packages.install(*os.environ["ABSENT_PACKAGES"].split(","))


def register(endpoint, server_id=None):
    """Makes a mock engine the only server of the pool, which then has no session."""
    body = json.dumps({"endpoint": endpoint, "serverId": server_id}).encode()
    urllib.request.urlopen(urllib.request.Request(f"{GATEWAY}/register", body, method="POST")).read()


def replace_rllm_gateway():
    """The tests of rllm make their gateway with `create_app`: the app forwards each request instead."""
    try:
        import rllm_model_gateway
    except ImportError:
        return

    def create_app(config):
        [worker] = config.workers
        register(worker.url, worker.worker_id or "0")
        return forwarding_app.ForwardingApp(GATEWAY)

    rllm_model_gateway.create_app = create_app


@pytest.hookimpl(hookwrapper=True)
def pytest_fixture_setup(fixturedef, request):
    outcome = yield
    if fixturedef.argname == "mock_servers":
        # Tests of SkyRL read the requests to the address that replaces their servers at the first server.
        servers = outcome.get_result()
        register(servers["server_urls"][0])
        servers["proxy_url"] = GATEWAY


def pytest_collection_finish(session):
    """The mock engines of slime and miles are started within the tests."""
    miles_stand_ins.replace_engines(register, GATEWAY)
    server = getattr(sys.modules.get("tests.test_agent._fakes"), "FakeSGLangServer", None)
    if server is None:
        return
    start = server.__aenter__

    async def start_behind_gateway(self):
        await start(self)
        register(self.url)
        self.url = GATEWAY
        return self

    server.__aenter__ = start_behind_gateway


replace_rllm_gateway()
miles_stand_ins.install_for(os.getcwd())
