"""The failed entries of a batch request to SQS or SNS: which of them are tried again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_THROTTLED: Final = frozenset({"OverLimit", "RequestLimitExceeded", "SlowDown", "TooManyRequests"})
"""The codes of a throttled entry whose name does not say so."""


def is_final(failed: Mapping[str, Any]) -> bool:
    """Tell whether the server refuses an entry for good.

    A throttled entry is the sender's fault in the server's words, and a later try may succeed.
    """
    code = str(failed.get("Code", ""))
    throttled = "throttl" in code.lower() or any(code.startswith(each) for each in _THROTTLED)
    return bool(failed.get("SenderFault")) and not throttled
