"""Tools for tasks of one event loop: deadlines, cancellation, waiting lines, group commit, retries.

They depend on no store and no broker.
"""
