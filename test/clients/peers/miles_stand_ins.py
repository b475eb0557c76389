"""Stand-ins for a hub, SGLang and its router in tests of miles: checkpoints with a tokenizer, and arguments."""

import os
import sys
import tempfile

CHECKPOINTS = ["Qwen3-0.6B", "Qwen3.5-0.8B", "Qwen3-4B-Thinking-2507", "Qwen3-Next-80B-A3B-Thinking"]
TEMPLATE = "miles/utils/chat_template_utils/templates/qwen3_fixed.jinja"


class ServerArgs:
    """Options of SGLang that the arguments of miles are validated with."""

    @staticmethod
    def add_cli_args(parser):
        for size in ("tp", "dp", "pp", "ep"):
            parser.add_argument(f"--{size}-size", type=int, default=1)
        deterministic = ("enable-deterministic-inference", "enable-prefill-only-deterministic-inference")
        for flag in ("enable-dp-attention", *deterministic):
            parser.add_argument(f"--{flag}", action="store_true")
        for name in ("chat-template", "speculative-algorithm", "tool-call-parser", "reasoning-parser"):
            parser.add_argument(f"--{name}")


class RouterArgs:
    """Options of the router of SGLang that the arguments of miles are validated with."""

    @staticmethod
    def add_cli_args(parser, **options):
        parser.add_argument("--router-assignment-mode", default="random")


def install_for(checkout):
    """Does nothing if the checkout is of another trainer. Makes a folder with checkpoints the current one: transformers
    prefers a folder to a name of the hub."""
    template = os.path.join(checkout, TEMPLATE)
    if not os.path.exists(template):
        return
    import sglang.srt.server_args
    import sglang_router.launch_router
    import stand_in_tokenizer

    sglang.srt.server_args.ServerArgs = ServerArgs
    sglang_router.launch_router.RouterArgs = RouterArgs
    os.chdir(tempfile.mkdtemp())
    for name in CHECKPOINTS:
        stand_in_tokenizer.write(os.path.join("Qwen", name), template)


def replace_engines(register, address):
    """Mock engines register themselves when they start, and have the address of the gateway then."""
    names = {
        "miles.utils.test_utils.mock_sglang_server": "MockSGLangServer",
        "tests.fast.router.session_pretokenized_test_utils": "ScriptedChatBackend",
    }
    for module, name in names.items():
        server = getattr(sys.modules.get(module), name, None)
        if server is not None:
            server.start = _start_behind(server.start, register, address)


class RequestLog(list):
    """Requests as tests expect them: without the fields that a gateway adds to each."""

    def append(self, request):
        super().append({name: value for name, value in request.items() if name not in ("rid", "extra_key")})


def _start_behind(start, register, address):
    def start_behind_gateway(self):
        start(self)
        register(self.url)
        self.request_log = RequestLog()
        host, port = address.removeprefix("http://").split(":")
        self.host, self.port = host, int(port)

    return start_behind_gateway
