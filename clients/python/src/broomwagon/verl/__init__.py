"""Broomwagon under verl, without a change to verl: see docs/trainers/verl.md.

`balancer` needs neither verl nor Ray. The other modules import both, but clients/python does not install them.
"""
