"""Reads settings as the command line of SkyRL does, and checks them as SkyRL does before a training: skyrl_config.py
SETTING ... Prints the result of SkyRL as JSON, or its error."""

import json
import sys

import absent_packages

absent_packages.install("pandas", "ray", "torch", "transformers")

from skyrl.train.config import SkyRLTrainConfig  # noqa: E402
from skyrl.train.utils.utils import _validate_new_inference_cfg  # noqa: E402

try:
    config = SkyRLTrainConfig.from_cli_overrides(sys.argv[1:])
    _validate_new_inference_cfg(config)
    engines = config.generator.inference_engine
    print(json.dumps({"url": engines.external_proxy_url, "model": engines.served_model_name}))
except ValueError as error:
    print(json.dumps({"error": str(error)}))
