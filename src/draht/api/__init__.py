"""Wire models and the ways to read them: quantities, versions, YAML, Kubernetes objects.

The lowest layer; it imports nothing of draht and has no effects. Import its modules by name
(``from draht.api import quantity``).
"""
