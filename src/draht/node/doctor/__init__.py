"""What keeps pods with claims from working on a node, as findings with their fix.

Looks only. `scene` asks everybody who knows something (the kubelet's directories, the machine's database, the API
server), each with a bounded patience; the other modules are pure functions from what was seen to findings. What
couldn't be asked is a finding itself and hides nothing else.
"""

from draht.node.doctor.report import Report, examine
from draht.node.doctor.scene import Expectation, NodeDirectories, Scene

__all__ = ["Expectation", "NodeDirectories", "Report", "Scene", "examine"]
