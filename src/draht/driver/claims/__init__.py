"""Preparing claims: the states of a claim, its files, its rows in the machine's database, and recovery."""
