"""A toy accelerator, to start your own driver from: four devices that are directories on the host.

draht node --driver toy.py
"""

from pathlib import Path

from draht import cdi
from draht.api.resource import Device, DeviceAttribute, DeviceCapacity, DeviceTaint
from draht.driver.framework import ClaimDevices, Driver, Health, Offer, Offered, Prepared


class Toy(Driver):
    """What a container gets is a directory of its device; a file ``broken`` in it makes the device ill."""

    name = "toy.example.com"

    def discover(self) -> Offer:
        """Four devices, each with an attribute and a capacity that claims can ask for."""
        return Offer.of(
            Offered(
                device=Device(
                    name=f"toy-{number}",
                    attributes={
                        "color": DeviceAttribute(string="red" if number % 2 else "blue"),
                        "draht.dev/simulated": DeviceAttribute(bool_=True),
                    },
                    capacity={"memory": DeviceCapacity(value=f"{16 * (number + 1)}Gi")},
                )
            )
            for number in range(4)
        )

    def prepare(self, claim: ClaimDevices) -> Prepared:
        """Make the directories, and mount them under ``/toys``."""
        edits = {}
        for allocated in claim.devices:
            directory = self._directory(allocated.result.device)
            directory.mkdir(parents=True, exist_ok=True)
            mount = cdi.Mount(
                host_path=str(directory), container_path=f"/toys/{directory.name}", options=("rw", "rbind")
            )
            edits[allocated.key] = cdi.ContainerEdits(mounts=(mount,))
        return Prepared(edits=edits, common=cdi.ContainerEdits(env=("TOYS=/toys",)))

    def health(self) -> list[Health]:
        """Ill devices get a taint, so that nobody new is given them."""
        taint = DeviceTaint(key=f"{self.name}/broken", effect="NoSchedule")
        return [
            Health(device=f"toy-{number}", state="Unhealthy", message="it has a file `broken`", taint=taint)
            for number in range(4)
            if (self._directory(f"toy-{number}") / "broken").exists()
        ]

    def _directory(self, device: str) -> Path:
        return Path(self.files, device)
