"""The Common Expression Language with the environment that Kubernetes gives to device selectors.

Lexer, parser, checker, cost estimator and compiler to closures. It knows one device at a time and nothing of claims,
slices or clusters. The errors are drawn in `draht.cel.errors`::

    selector = compile_selector('device.attributes["gpu.example.com"].model == "H100"')
    selector.evaluate(Device.of("gpu.example.com", device))  # True, False or an EvaluationError
"""

from draht.cel.device import Device, Features
from draht.cel.errors import AbortError, CELError, CompileError, EvaluationError, Issue, LimitError
from draht.cel.mentions import Key, Mentions
from draht.cel.selector import DerivedAttribute, Selector, compile_derived, compile_selector

__all__ = [
    "AbortError",
    "CELError",
    "CompileError",
    "DerivedAttribute",
    "Device",
    "EvaluationError",
    "Features",
    "Issue",
    "Key",
    "LimitError",
    "Mentions",
    "Selector",
    "compile_derived",
    "compile_selector",
]
