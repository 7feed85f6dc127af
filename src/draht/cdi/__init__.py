"""Container Device Interface."""
