"""Pruned search: upstream's first solution without upstream's detours.

Upstream's search is exhaustive, so a claim that fits late or not at all can take it minutes. Each module here owns one
rule that skips subtrees which hold neither a solution nor a fatal error, together with the proof that it doesn't change
the outcome. `model` lists the facts that the proofs build on; `strict` refuses every problem for which one of them
doesn't hold, and such a problem is searched without pruning.

===========  ====================================================================
rule 0       a node that is exactly one that failed (`exact`)
rule 1       devices that nothing tells apart (`symmetry`)
rule 1b      devices of isomorphic blocks (`blocks`)
rule 2       a node that is, up to renaming, one that failed (`memo`)
rule 3       counting what remaining requests need (`counting`)
===========  ====================================================================

Knows nothing of names, nodes, claims or results.
"""

from draht.allocator.prune.model import Choice, Model, Root, Rule
from draht.allocator.prune.search import Found, Outcome, search

__all__ = ["Choice", "Found", "Model", "Outcome", "Root", "Rule", "search"]
