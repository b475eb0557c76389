"""Stand-ins for a hub, SGLang and its router in tests of miles: checkpoints with a tokenizer, and arguments."""

import os
import sys
import tempfile

CHECKPOINTS = ["Qwen3-0.6B", "Qwen3.5-0.8B", "Qwen3-4B-Thinking-2507", "Qwen3-Next-80B-A3B-Thinking"]
TEMPLATE = "miles/utils/chat_template_utils/templates/qwen3_fixed.jinja"
# Whether an assistant message gets a `<think>` block: the condition of TEMPLATE, and the condition of the template that
# Qwen3 publishes. Only prompts of the published template are known to the mock engine of tests with several turns.
FIXED_CONDITION = "(not (clear_thinking | default(true))) or loop.index0 > ns.last_query_index"
PUBLISHED_CONDITION = "loop.index0 > ns.last_query_index and (loop.last or reasoning_content)"


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
    with open(template) as file:
        fixed = file.read()
    if FIXED_CONDITION not in fixed:
        raise ValueError(f"{template}: no condition {FIXED_CONDITION!r}; see docs/gateway.md for the commit of miles")
    import sglang.srt.server_args
    import sglang_router.launch_router
    import stand_in_tokenizer

    sglang.srt.server_args.ServerArgs = ServerArgs
    sglang_router.launch_router.RouterArgs = RouterArgs
    os.chdir(tempfile.mkdtemp())
    for name in CHECKPOINTS:
        stand_in_tokenizer.write(os.path.join("Qwen", name), fixed.replace(FIXED_CONDITION, PUBLISHED_CONDITION))


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


# Fields that the gateway adds to each request.
ADDED_FIELDS = ("rid", "extra_key", "cache_salt")


class RequestLog(list):
    """Requests as tests expect them: without ADDED_FIELDS."""

    def append(self, request):
        super().append({name: value for name, value in request.items() if name not in ADDED_FIELDS})


def _start_behind(start, register, address):
    def start_behind_gateway(self):
        start(self)
        register(self.url)
        self.request_log = RequestLog()
        host, port = address.removeprefix("http://").split(":")
        self.host, self.port = host, int(port)

    return start_behind_gateway
