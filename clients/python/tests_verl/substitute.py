"""A pytest plugin: puts the balancer in the place of verl's, before verl's own tests import it."""

import verl.workers.rollout.router as router

from broomwagon.verl.balancer import Balancer

router.GlobalRequestLoadBalancer = Balancer
