"""examples/verl_long_tail.sh: verl reads its settings, checks them, and makes the trainer of them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from cluster import HAS_ROUTERS
from omegaconf import OmegaConf
from verl.trainer.ppo.utils import need_critic, need_reference_policy
from verl.trainer.ppo.v1 import get_trainer_cls
from verl.utils.config import validate_config

from broomwagon.verl import long_tail
from broomwagon.verl.balancer import Balancer

EXAMPLE = Path(__file__).parent.parent / "examples" / "verl_long_tail.sh"
TIMEOUT = 600


def settings_of(folder: Path, *more: str) -> Any:
    """The settings with which the example starts verl."""
    environment = {**os.environ, "PYTHON": sys.executable, "OUTPUT": str(folder), "GPUS": "8", "CAPACITY": "64"}
    arguments = ["/models/small", "/data/train.parquet", "/data/test.parquet", *more, "--cfg", "job"]
    command = ["bash", str(EXAMPLE), *arguments]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert run.returncode == 0, run.stderr
    # Logs of the import of verl come before the settings.
    return OmegaConf.create(run.stdout[run.stdout.index("actor_rollout_ref:") :])


@pytest.mark.skipif(not HAS_ROUTERS, reason="verl 0.9.0 has no router_config_path")
def test_verl_takes_the_settings_of_the_example(tmp_path: Path) -> None:
    config = settings_of(tmp_path, "+trainer.v1.broomwagon.max_longtail_share=0.25")
    validate_config(config, need_reference_policy(config), need_critic(config))
    trainer: Any = get_trainer_cls(config.trainer.v1.trainer_mode)(config)
    assert isinstance(trainer, long_tail.LongTailTrainer)
    assert (trainer._over_provision, trainer._share) == (1.5, 0.25)
    router = OmegaConf.load(config.actor_rollout_ref.rollout.router_config_path)
    assert router.router_class == "broomwagon.verl.router.Router"
    # verl creates the balancer with the other fields of the file.
    balancer = Balancer({}, {"pool": router.pool, "capacity": router.capacity})
    assert balancer._settings.capacity == 64
