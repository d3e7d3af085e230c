"""The settings of the runner."""

from __future__ import annotations

from pydantic import Field

from socratic_bench.service_settings import ServiceSettings


class RunnerSettings(ServiceSettings):
    """What the runner is told at start."""

    runner_in_flight: int = Field(default=1_000, ge=1, le=100_000)
    """Runs in hand at a time, at most."""

    runner_in_flight_per_model: int = Field(default=250, ge=1, le=100_000)
    """Of one model, at most, so that a slow one does not fill the runner."""

    runner_attempts: int = Field(default=4, ge=1, le=100)
    """Calls for one turn, at most, before its run has failed."""

    runner_first_delay: float = Field(default=0.5, gt=0, le=60)
    """Seconds: the bound of the first delay between calls, doubled with every further one."""

    runner_longest_delay: float = Field(default=30.0, gt=0, le=3600)
    """Seconds: the ceiling of that bound. What a provider asks for is waited for all the same."""
