"""The tests use one thread for each process, as the study does."""

from __future__ import annotations

import os

# Must be set before numpy is imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
