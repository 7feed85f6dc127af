"""What the vendors' devices look like, what their drivers prepare, and which settings they know."""
