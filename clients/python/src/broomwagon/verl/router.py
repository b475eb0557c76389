"""`router_class: broomwagon.verl.router.Router` of the file that `rollout.router_config_path` names."""

import ray

from .balancer import Balancer

#: An actor with room for every waiting request, because a release must not wait behind acquires.
Router = ray.remote(max_concurrency=100_000)(Balancer)
