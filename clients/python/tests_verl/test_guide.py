"""The blocks of docs/trainers/verl.md, read by verl and Hydra as a user's shell would give them."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import verl
from cluster import HAS_ROUTERS
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf
from verl.trainer.ppo.v1 import get_trainer_cls
from verl.utils.import_utils import load_class_from_fqn

from broomwagon.verl.router import Router

GUIDE = (Path(__file__).parents[3] / "docs" / "trainers" / "verl.md").read_text()
BLOCKS = re.findall(r"```(\w+)\n(.*?)```", GUIDE, re.DOTALL)
LINES = [line.split(" #")[0].strip() for kind, block in BLOCKS if kind == "sh" for line in block.splitlines()]
#: Settings of verl, as its command line takes them.
SETTINGS = [line for line in LINES if re.match(r"\+?[a-z][\w.]*=", line)]
#: Commands of the shell; the client is installed by the suite.
COMMANDS = [line for line in LINES if line not in SETTINGS]


def composed(settings: list[str]) -> Any:
    folder = str(Path(verl.__file__).parent / "trainer" / "config")
    with initialize_config_dir(folder, version_base=None):
        return compose("ppo_trainer", settings)


def test_every_line_of_the_guide_is_known() -> None:
    assert len(SETTINGS) == 5
    assert [line.split()[:2] for line in COMMANDS] == [
        ["pip", "install"],
        ["export", "NATS_URL=nats://nats:4222"],
        ["export", "VERL_USE_EXTERNAL_MODULES=broomwagon.verl.long_tail"],
    ]


@pytest.mark.skipif(not HAS_ROUTERS, reason="verl 0.9.0 has no router_config_path")
def test_verl_takes_the_router_of_the_guide() -> None:
    [block] = [block for kind, block in BLOCKS if kind == "yaml"]
    settings = OmegaConf.create(block)
    assert load_class_from_fqn(settings["router_class"], "Router") is Router
    [setting] = [line for line in SETTINGS if "router_config_path" in line]
    assert composed([setting]).actor_rollout_ref.rollout.router_config_path == "/path/router.yaml"


def test_verl_takes_the_manager_of_the_guide() -> None:
    [setting] = [line for line in SETTINGS if "agent_loop_manager_class" in line]
    name = composed([setting]).actor_rollout_ref.rollout.agent.agent_loop_manager_class
    assert load_class_from_fqn(name, "AgentLoopManager").__name__ == "AgentLoopManagerTQ"


@pytest.mark.parametrize(
    ("module", "mode", "others"),
    [("trainer", "broomwagon_colocate_async", 0), ("long_tail", "broomwagon_long_tail", 1)],
)
def test_verl_takes_the_trainer_modes_of_the_guide(module: str, mode: str, others: int) -> None:
    assert f"VERL_USE_EXTERNAL_MODULES=broomwagon.verl.{module}" in GUIDE
    import_module(f"broomwagon.verl.{module}")
    settings = [f"trainer.v1.trainer_mode={mode}", *[line for line in SETTINGS if "over_provision" in line][:others]]
    assert settings[0] in SETTINGS
    config = composed(settings)
    trainer_class = get_trainer_cls(config.trainer.v1.trainer_mode)
    assert trainer_class.__module__ == f"broomwagon.verl.{module}"
    if others:
        assert config.trainer.v1.broomwagon.over_provision == 1.5
