"""A pytest plugin: puts the balancer in the place of verl's, before verl's own tests import it."""

import os

os.environ["BROOMWAGON_VERL"] = "balancer"

import broomwagon.verl.plugin  # noqa: F401
