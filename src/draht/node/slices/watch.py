"""The slices of one driver on the server that concern one node, and what of them belongs to it.

Owns one watch with the memory of own writes beside it, for the slices of the node or for those of all nodes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from draht.api.resource import ResourceSlice
from draht.kube import SLICES, Client, KubeError, Reflector
from draht.node.slices.memory import SliceMemory

__all__ = ["SliceWatch"]


class SliceWatch:
    """Follows slices of a driver.

    Args:
        client: A connected client.
        driver: Name of the driver.
        node_name: The node whose slices are followed; empty for slices that are for several nodes.
        wake: Called after every change.
    """

    def __init__(self, client: Client, driver: str, node_name: str, wake: Callable[[], None]) -> None:
        self._client = client
        self._selector = f"spec.driver={driver},spec.nodeName={node_name}"
        self._reflector = Reflector(client, SLICES, field_selector=self._selector)
        self._wake = wake
        self.memory = SliceMemory(client.clock)

    async def run(self) -> None:
        """Follow the server until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._reflector.run())
            async for _ in self._reflector.subscribe():
                self._wake()

    async def synced(self) -> None:
        """Wait until it is known what is there."""
        await self._reflector.synced()

    @property
    def problem(self) -> KubeError | None:
        """What keeps the watch from following; None when all is well."""
        return self._reflector.problem

    def present(self) -> tuple[ResourceSlice, ...]:
        """The slices that are there, own writes included that the watch hasn't shown yet."""
        store = self._reflector.store
        return self.memory.view(store.all(), store.resource_version)

    async def ask(self) -> tuple[ResourceSlice, ...]:
        """Ask the server directly, and take its answer for what is there until the watch has come past it.

        Raises:
            KubeError: It didn't answer.
        """
        listed = await self._client.list(SLICES, field_selector=self._selector)
        self.memory.listed(listed.items, listed.resource_version)
        return listed.items
