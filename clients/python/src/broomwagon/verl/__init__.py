"""Broomwagon under verl, without a change to verl: see docs/trainers/verl.md.

`balancer` needs neither verl nor Ray; the other modules import them, and clients/python does not require them.
"""
