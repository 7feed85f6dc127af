"""The functions of the language and of Kubernetes, one library per module.

Each module declares its functions whole: types for the checker, code for the compiler, price for the cost estimator.
"""
