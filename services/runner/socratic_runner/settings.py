"""The settings of the runner."""

from __future__ import annotations

from pydantic import DirectoryPath, Field, SecretStr

from socratic_bench.service_settings import ServiceSettings, WorkerProcessSettings


class RunnerSettings(ServiceSettings):
    """How the runner carries out runs."""

    runner_in_flight: int = Field(default=5_000, ge=1, le=100_000)
    """The most runs in hand at a time."""

    runner_in_flight_per_model: int = Field(default=250, ge=1, le=100_000)
    """The most runs of one model in hand, so that a slow model cannot fill the runner."""

    runner_attempts: int = Field(default=4, ge=1, le=100)
    """The most calls for one turn before its run fails."""

    runner_patient_attempts: int = Field(default=12, ge=1, le=1000)
    """The same for calls that failed since the provider was busy or could not be reached: they
    have a count of their own."""

    runner_first_delay: float = Field(default=0.5, gt=0, le=60)
    """Seconds: the bound of the first delay between calls, doubled with every further one."""

    runner_longest_delay: float = Field(default=30.0, gt=0, le=3600)
    """Seconds: the ceiling of that bound. What a provider asks for is waited for all the same."""

    runner_lease_margin: float = Field(default=30.0, gt=0, le=3600)
    """Seconds that a lease lasts longer than the deadline of its call, for what comes before the
    call and after it. Nobody waits for that time where a runner has died."""

    endpoints: SecretStr | None = None
    """The addresses that may be called, each with the key that it may be sent, as JSON or as the
    path of a file that holds it; a secret, since there may be keys in it."""

    runner_busy_delay: float = Field(default=10.0, gt=0, le=3600)
    """Seconds until a run that another runner has is looked at again."""


class RunnerProcessSettings(RunnerSettings, WorkerProcessSettings):
    """What the runner needs besides where it is a process of its own."""

    store_url: SecretStr = Field(min_length=1)
    """The address of the store; a secret, since there may be a password in it."""

    health_port: int = Field(default=9101, ge=0, le=65535)

    runner_folder: DirectoryPath | None = None
    """Where files that models' ids name are: what `replay/FILE` replays."""
