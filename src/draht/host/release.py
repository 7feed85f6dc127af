"""`draht release`: end a hold from outside. The container is stopped and removed, then its devices are free."""

from __future__ import annotations

import os
from collections.abc import Sequence

from draht.driver import audit, holds
from draht.driver.claims.rows import Claim
from draht.driver.holds import Hold
from draht.host.engine import EngineError
from draht.host.errors import NotOwnerError, SelectionError
from draht.host.holding import user_name
from draht.host.order import Host
from draht.host.reconcile import Reconciled, end

__all__ = ["find", "release"]


def find(held: Sequence[Hold], text: str, claims: Sequence[Claim] = ()) -> Hold:
    """The hold with that id, or the only one whose id or container begins with it.

    Args:
        held: All holds.
        text: What somebody wrote.
        claims: Claims of pods, to say what to do if one of them is meant.

    Raises:
        SelectionError: There is none, or several; or it is a claim.
    """
    found = [hold for hold in held if hold.id == text] or [
        hold for hold in held if text and (hold.id.startswith(text) or (hold.container or "").startswith(text))
    ]
    if len(found) == 1:
        return found[0]
    if found:
        names = ", ".join(hold.id for hold in found)
        raise SelectionError(f"`{text}` means {len(found)} holds: {names}", hint="write more of the id")
    for claim in claims:
        record = claim.record
        if text in (record.title, record.name) or (text and record.uid.startswith(text)):
            raise SelectionError(
                f"`{text}` is claim {record.title}, which was prepared for a pod",
                hint="it ends with its pod: "
                f"`kubectl describe resourceclaim -n {record.namespace} {record.name}` shows which that is",
            )
    names = ", ".join(hold.id for hold in held[:8])
    raise SelectionError(f"there is no hold `{text}`", hint=f"there are {names}" if names else "nothing is held")


def release(host: Host, hold: Hold, state: Reconciled, *, force: bool = False) -> None:
    """End a hold.

    Args:
        host: The machine.
        hold: A hold of its database.
        state: The reconcile that was just done.
        force: Also somebody else's hold; and free the devices even if the container can't be seen or removed from here,
            which is right only if the caller knows that nothing uses them.

    Raises:
        NotOwnerError: It is somebody else's, and not forced.
        EngineError: The container can't be removed, and not forced; the hold stays, marked ``releasing``.
    """
    if hold.uid != os.getuid() and not force:
        raise NotOwnerError(
            f"hold {hold.id} belongs to {hold.user}", hint=f"let {hold.user} do it, or add --force to end their work"
        )
    listed = state.listed.get(hold.engine)
    ids = [container.id for container in listed or () if container.hold == hold.id]
    unseen = listed is None or (not ids and hold.uid != os.getuid() and hold.state == "running")
    if unseen and not force:
        raise EngineError(
            f"the container of hold {hold.id} can't be seen from here, so it can't be stopped",
            hint=f"let {hold.user} do it; or, if you know that nothing uses the devices, add --force",
        )
    with host.database.transaction() as tx:
        audit.record(tx, "released", hold.id, f"by {user_name(os.getuid())}{', by force' if force else ''}")
    try:
        end(host.database, hold, host.engines.get(hold.engine), ids, "released by hand")
    except EngineError as error:
        if not force:
            raise
        host.say(f"warning: {error}")
        with host.database.transaction() as tx:
            audit.record(tx, "failed", hold.id, f"container not removed: {error}")
            holds.delete(tx, hold.id, "released by hand, whatever became of the container")
