"""How Socratic is a tutor? `score(text)` answers for one response.

>>> from socratic_bench import score
>>> f"{score('What might you consider?').exploratory:.2f}"
'1.00'
"""

from socratic_bench.scoring.legacy import is_legacy, on_unit_scale
from socratic_bench.scoring.score import Score, score
from socratic_bench.scoring.statuses import Status

__all__ = ["Score", "Status", "is_legacy", "on_unit_scale", "score"]
