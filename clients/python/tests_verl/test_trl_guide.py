"""The settings of docs/trainers/trl.md, read by TRL itself, which needs the packages that verl needs too."""

from __future__ import annotations

import inspect
import re
import shlex
from importlib.metadata import version
from pathlib import Path
from typing import Any

from trl import GRPOConfig, GRPOTrainer
from trl.scripts.vllm_serve import ScriptArguments, build_command

GUIDE = (Path(__file__).parents[3] / "docs" / "trainers" / "trl.md").read_text()


def test_the_guide_names_the_release() -> None:
    assert f"TRL {version('trl')}" in GUIDE


def test_trl_takes_the_settings(tmp_path: Path) -> None:
    block = re.findall(r"```python\n(.*?)```", GUIDE, re.DOTALL)[0]
    names: dict[str, Any] = {}
    # TRL refuses the default precision without a GPU.
    exec(block.replace("GRPOConfig(", f"GRPOConfig(output_dir={str(tmp_path)!r}, bf16=False, use_cpu=True, "), names)
    config: GRPOConfig = names["config"]
    assert (config.use_vllm, config.vllm_mode) == (True, "server")
    assert config.vllm_importance_sampling_correction
    assert "rollout_func" in inspect.signature(GRPOTrainer).parameters


def test_the_engine_is_started_as_trl_starts_it() -> None:
    [command] = re.findall(r"vllm serve .*", GUIDE)
    expected = build_command(ScriptArguments(model="my-model"))
    own = expected[expected.index("--weight-transfer-config") :]
    assert shlex.split(command)[3:] == own
