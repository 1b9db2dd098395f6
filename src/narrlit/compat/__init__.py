"""Private names of other packages, one module a package; used nowhere else.

Each function says why the name is needed, which release it was checked with, and what public name would replace it;
`tests/test_compat.py` fails when a release changes it.
"""
