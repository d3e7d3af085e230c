"""Each model client keeps the promises of its port."""

from socratic_bench.testing.client_contract import *
