"""The command line: one module per command that parses, calls and prints. No logic lives here."""
