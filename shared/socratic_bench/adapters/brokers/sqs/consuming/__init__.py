"""One consumer: it polls, holds, hands out and settles messages."""
