"""Everything a run needs, as processes: NATS and Redis, the services of Broomwagon, and two engines."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from uuid import uuid4

REPOSITORY = Path(__file__).resolve().parents[3]
EXAMPLE = Path(__file__).resolve().parents[1]
START_DEADLINE = 120.0
GRACE = 10.0
SERVICES = ("load-balancer", "trainer-coordinator", "worker")
ENGINES = ("engine-1", "engine-2")
#: Requests of a worker that is killed are returned after so many milliseconds.
WORKER_TTL_MS = 10_000


class Process:
    """A process that is restarted when it ends, as by Kubernetes, until `stop`.

    :param is_replaced: False: an ended process is not restarted
    """

    def __init__(
        self, name: str, command: list[str], environment: Mapping[str, str], folder: Path, is_replaced: bool = True
    ) -> None:
        self.name = name
        self._command = command
        self._environment = {**os.environ, **environment}
        self._log = folder / f"{name}.log"
        self._is_stopping = False
        self.starts = 0
        self._child = self._start()
        self._watch = threading.Thread(target=self._restart, daemon=True)
        if is_replaced:
            self._watch.start()

    @property
    def pid(self) -> int:
        return self._child.pid

    def kill(self) -> None:
        """Kills the process, like `kill -9`."""
        os.kill(self.pid, signal.SIGKILL)

    def stop(self) -> None:
        self._is_stopping = True
        self._child.terminate()
        try:
            self._child.wait(GRACE)
        except subprocess.TimeoutExpired:
            self._child.kill()
        if self._watch.is_alive():
            self._watch.join(GRACE)
        # The process may have been restarted at the same moment.
        self._child.kill()

    def log(self) -> str:
        """Last lines of the process's output."""
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-30:])

    def _start(self) -> subprocess.Popen[bytes]:
        self.starts += 1
        with self._log.open("ab") as log:
            return subprocess.Popen(self._command, stdout=log, stderr=log, env=self._environment, cwd=REPOSITORY)

    def _restart(self) -> None:
        while self._child.wait() is not None and not self._is_stopping:
            # A process that cannot start must not use the whole machine.
            time.sleep(0.2)
            if not self._is_stopping:
                self._child = self._start()


class System:
    """Starts all processes in a pool of their own, and ends them.

    :param start_weights: file of the engines' first weights
    :param pace: real seconds of a simulated second of the engines
    """

    def __init__(self, start_weights: Path, pace: float = 1.0, worker_ttl_ms: int = WORKER_TTL_MS) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="tiny-grpo-"))
        self.processes: dict[str, Process] = {}
        self._servers: subprocess.Popen[str] | None = None
        self._start_weights = start_weights
        self._pace = pace
        self._worker_ttl_ms = worker_ttl_ms
        self._pool = f"tiny-grpo-{uuid4().hex[:8]}"
        #: Environment of the trainer.
        self.environment: dict[str, str] = {}
        self.engines: dict[str, str] = {}

    def __enter__(self) -> System:
        try:
            self._start()
        except BaseException:
            self.__exit__(None, None, None)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in self.processes.values():
            process.stop()
        if self._servers:
            self._servers.terminate()
            self._servers.wait(GRACE)

    def _start(self) -> None:
        servers = self._start_servers()
        services = {
            **servers,
            "POOLS": self._pool,
            "POOL": self._pool,
            "REDIS_KEY_PREFIX": self._pool,
            "ENGINE_ALLOW_LIST": "127.0.0.1",
            "LOG_LEVEL": "warn",
            "WORKER_TTL_MS": str(self._worker_ttl_ms),
            "UNCLAIMED_AFTER_MS": str(self._worker_ttl_ms),
            "CONCURRENCY": "1024",
            "HTTP_PORT": "0",
        }
        for name in SERVICES:
            program = REPOSITORY / "dist" / "apps" / name / "src" / "main.js"
            own = {"WORKER_ID": name, "READY_FILE": str(self.folder / f"{name}.json")}
            self._add(name, ["node", str(program)], {**services, **own})
        for index, name in enumerate(ENGINES):
            command = [sys.executable, "-m", "tiny_grpo.engine", "--weights", str(self._start_weights)]
            command += ["--seed", str(index), "--pace", str(self._pace)]
            # A restarted engine would have another address.
            self._add(name, command, python_environment(), is_replaced=False)
        for name in SERVICES:
            self._wait(name, (self.folder / f"{name}.json").exists)
        for name in ENGINES:
            log = self.processes[name].log
            self._wait(name, lambda log=log: "ready" in log())  # type: ignore[misc]
            self.engines[name] = f"http://127.0.0.1:{log().split()[-1]}"
        self.environment = {**python_environment(), "NATS_URL": servers["NATS_URL"], "POOL": self._pool}

    def _start_servers(self) -> dict[str, str]:
        program = REPOSITORY / "dist" / "libs" / "testing" / "src" / "services.cli.js"
        if not program.exists():
            raise FileNotFoundError(f"{program} does not exist: run `npm run build`")
        self._servers = subprocess.Popen(["node", str(program)], stdout=subprocess.PIPE, text=True, cwd=REPOSITORY)
        assert self._servers.stdout
        lines = [self._servers.stdout.readline() for _ in range(2)]
        if not all(lines):
            raise RuntimeError("NATS and Redis did not start")
        pairs = (line.removeprefix("export ").strip().partition("=") for line in lines)
        return {name: value.strip("'") for name, _, value in pairs}

    def _add(self, name: str, command: list[str], environment: Mapping[str, str], is_replaced: bool = True) -> None:
        self.processes[name] = Process(name, command, environment, self.folder, is_replaced)

    def _wait(self, name: str, is_ready: Callable[[], bool]) -> None:
        ends_at = time.monotonic() + START_DEADLINE
        while not is_ready():
            if time.monotonic() > ends_at:
                raise TimeoutError(f"{name} is not ready:\n{self.processes[name].log()}")
            time.sleep(0.05)

    def trainer(self, options: Mapping[str, object]) -> subprocess.Popen[bytes]:
        """Starts the trainer with these options."""
        command = [sys.executable, "-m", "tiny_grpo.trainer", "--engines", json.dumps(self.engines)]
        for name, value in options.items():
            command += [f"--{name}", str(value)]
        return subprocess.Popen(command, env={**os.environ, **self.environment})


def python_environment() -> dict[str, str]:
    """One thread for each process: engines and trainer share few cores."""
    paths = [str(EXAMPLE), str(REPOSITORY / "clients" / "python" / "src"), os.environ.get("PYTHONPATH", "")]
    return {
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "1",
    }
