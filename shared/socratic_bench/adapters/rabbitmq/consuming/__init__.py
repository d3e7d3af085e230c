"""One consumer: what it receives, holds, hands out and settles."""
