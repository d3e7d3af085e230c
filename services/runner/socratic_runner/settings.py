"""The settings of the runner."""

from __future__ import annotations

from pydantic import DirectoryPath, Field, SecretStr

from socratic_bench.service_settings import (
    QueueFunctionSettings,
    ServiceSettings,
    WorkerProcessSettings,
)


class RunnerSettings(ServiceSettings):
    """Settings of the runner's work."""

    runner_in_flight: int = Field(default=5_000, ge=1, le=100_000)
    """The most runs in hand at a time."""

    runner_in_flight_per_model: int = Field(default=250, ge=1, le=100_000)
    """The most runs of one model and priority in hand: a slow model cannot fill the runner."""

    runner_attempts: int = Field(default=4, ge=1, le=100)
    """The most calls for one turn before its run fails."""

    runner_patient_attempts: int = Field(default=12, ge=1, le=1000)
    """The same for calls that failed at a busy or unreachable provider; they are counted apart."""

    runner_first_delay: float = Field(default=0.5, gt=0, le=60)
    """Seconds: the bound of the first delay between calls; it doubles with every further one."""

    runner_longest_delay: float = Field(default=30.0, gt=0, le=3600)
    """Seconds: the ceiling of that bound. A provider's own wait may be longer."""

    runner_lease_margin: float = Field(default=30.0, gt=0, le=3600)
    """Seconds that a lease lasts longer than the deadline of its call, for the work before the
    call and after it. A dead runner's leases end sooner."""

    endpoints: SecretStr | None = None
    """The permitted addresses, each with its key, as JSON or as the path of a file that holds
    it; a secret, since it may hold keys."""

    endpoint_secrets: dict[str, str] = Field(default={})
    """The secret of AWS for each endpoint by the endpoint's name, as JSON. A secret holds what
    SOCRATIC_ENDPOINTS has for one endpoint."""

    runner_busy_delay: float = Field(default=10.0, gt=0, le=3600)
    """Seconds until the runner looks again at a run that another runner holds."""


class RunnerProcessSettings(RunnerSettings, WorkerProcessSettings):
    """Settings of the runner as a process of its own."""

    store_url: SecretStr = Field(min_length=1)
    """The address of the store; a secret, since it may hold a password."""

    health_port: int = Field(default=9101, ge=0, le=65535)

    runner_folder: DirectoryPath | None = None
    """The folder of the files that models' ids name, such as FILE of `replay/FILE`."""


class RunnerFunctionSettings(RunnerSettings, QueueFunctionSettings):
    """Settings of the runner as a function."""

    store_url: SecretStr = Field(min_length=1)
    """The address of the store."""

    runner_longest_pause: float = Field(default=5.0, ge=0, le=300)
    """Seconds that a run waits in hand for its paused model, before its message goes back."""
