"""The Kubernetes side of deciding: how a decision becomes what the stock scheduler binds.

Errors::

    DrahtError
    └── DecisionError    a decision couldn't be written, or was overtaken
"""

from draht.controller.decision import FINALIZER, GATE, MANAGED, Decision, DecisionError, Writer, hindrance

__all__ = ["FINALIZER", "GATE", "MANAGED", "Decision", "DecisionError", "Writer", "hindrance"]
