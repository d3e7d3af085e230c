"""One consumer: it receives, holds, hands out and settles messages."""
