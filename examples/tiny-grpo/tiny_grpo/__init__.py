"""A GRPO run on two CPU cores, with rollouts by Broomwagon."""
