"""The Common Expression Language with the environment that Kubernetes gives to device selectors.

Lexer, parser, checker, cost estimator and compiler to closures. It knows one device at a time and nothing of claims,
slices or clusters.
"""
