"""The machine's database of holds, and how a device is prepared."""
