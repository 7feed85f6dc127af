"""draht carries GPUs from the hardware to the workload.

Sub-packages are imported by name (``from draht import cdi``); this module imports none of them, so that a program
pays only for what it uses. ``ARCHITECTURE.md`` shows the way of a request through them.
"""

__version__ = "0.1.0"
