"""The manifest: the frozen plan of a benchmark, named by a hash of its content."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta
from functools import cached_property
from typing import Annotated, Any, ClassVar, Final

from pydantic import BaseModel, ConfigDict, Field, JsonValue, model_validator

from socratic_bench.domain.experiment.state import ExperimentState
from socratic_bench.domain.grading import RUBRIC, Rubric
from socratic_bench.domain.identifiers import content_name, experiment_id, run_id
from socratic_bench.domain.money import Dollars, Price
from socratic_bench.domain.run import MOST_REPEATS, NORMAL, Priority, Run, request_groups
from socratic_bench.domain.scenario import Name, Scenario
from socratic_bench.domain.student import STUDENT_PROMPT, StudentPrompt, unplayable
from socratic_bench.scoring.graded_profile import SUFFIX
from socratic_bench.scoring.profile import CANONICAL
from socratic_bench.scoring.weighted_profile import remember, stored_profile

DEFAULT_SYSTEM_PROMPT = (
    "You are a tutor who teaches in the Socratic way. Do not give the answer. "
    "Help the student to find it by asking one short, open question at a time."
)


MaxTokens = Annotated[int, Field(ge=1, le=100_000)]
Temperature = Annotated[float, Field(ge=0, le=2)]
TopP = Annotated[float, Field(gt=0, le=1)]


class Parameters(BaseModel):
    """Sampling parameters. A call leaves out a parameter that its model does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_tokens: MaxTokens = 600
    """The most output tokens; over 500, so that a cut-off response can still be scored."""

    temperature: Temperature = 0.7
    top_p: TopP | None = None


class OwnParameters(BaseModel):
    """The sampling parameters of one model; None: the plan's."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    max_tokens: MaxTokens | None = None
    temperature: Temperature | None = None
    top_p: TopP | None = None

    @property
    def given(self) -> dict[str, Any]:
        """Those that replace the plan's, by name."""
        return self.model_dump(exclude_none=True)


class Limits(BaseModel):
    """Limits of the calls to a model. They do not enter the measurement."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    concurrency: Annotated[int, Field(ge=1, le=10_000)] | None = None
    """The most calls in flight; None: the provider's default."""

    requests_per_minute: Annotated[int, Field(ge=1, le=10_000_000)] | None = None
    """The most calls begun in a minute; None: unknown."""

    tokens_per_minute: Annotated[int, Field(ge=1, le=1_000_000_000)] | None = None
    """The most tokens in a minute, input and output; None: unknown."""

    connect_timeout_seconds: Annotated[float, Field(gt=0, le=3600)] = 10.0
    """The deadline of connecting."""

    first_byte_timeout_seconds: Annotated[float, Field(gt=0, le=3600)] = 60.0
    """The deadline of the first byte of a streamed response."""

    timeout_seconds: Annotated[float, Field(gt=0, le=3600)] = 120.0
    """The deadline of one call."""

    run_timeout_seconds: Annotated[float, Field(gt=0, le=24 * 3600)] = 1800.0
    """The deadline of a run, from its first call on. A run past it begins no further call and
    fails."""


PROMPT_NAME: Final = r"^[\w.-]{1,60}$"
"""The names of prompts."""


class TutorModel(BaseModel):
    """One model under test."""

    model_config = ConfigDict(frozen=True, extra="forbid")
    unwritten: ClassVar[frozenset[str]] = frozenset({"prompt"})
    """The fields that no configuration has: it says them elsewhere."""

    id: Annotated[Name, Field(pattern=r"^[a-z0-9_-]+/[^\s\x00]([^\n\x00]*[^\s\x00])?$")]
    """`provider/name`."""

    name: str = ""
    """The name for people; an empty one shows the id."""

    options: dict[str, JsonValue] = Field(default_factory=dict)
    """Further options of the provider, such as `latency_ms` of a reference tutor."""

    base_url: str | None = None
    endpoint: Annotated[
        str | None,
        # An older version reads only plans without this field.
        Field(pattern=r"^[A-Za-z0-9._-]{1,64}$", exclude_if=lambda name: name is None),
    ] = None
    """The name of one of the endpoints that the operator listed for this address, if there are
    several. It never says where the key is."""

    system_prompt: Annotated[str | None, Field(exclude_if=lambda prompt: prompt is None)] = None
    """The system prompt of this model; None: the plan's."""

    parameters: Annotated[
        OwnParameters,
        # An older version reads only plans without this field.
        Field(exclude_if=lambda parameters: not parameters.given),
    ] = OwnParameters()
    """The sampling parameters of this model, in place of the plan's."""

    prompt: Annotated[
        str | None,
        # An older version reads only plans without this field.
        Field(pattern=PROMPT_NAME, exclude_if=lambda prompt: prompt is None),
    ] = None
    """The name of its system prompt among the `prompts` of a configuration, which asks each model
    under each of them; its id ends with it. None: it has no such name."""

    price: Price | None = None
    """None: unknown, which is not zero."""

    context_tokens: Annotated[int, Field(ge=1, le=1_000_000_000)] | None = None
    """The most tokens that the model reads and writes in one call; None: unknown."""

    limits: Limits = Limits()

    @property
    def provider(self) -> str:
        return self.id.partition("/")[0]

    @property
    def display_name(self) -> str:
        return self.name or self.id

    @property
    def own_id(self) -> str:
        """The id without the name of its prompt: equal ones are one model of the provider."""
        return self.id if self.prompt is None else self.id.removesuffix(f"@{self.prompt}")

    @property
    def name_at_provider(self) -> str:
        """The part of its own id after the slash."""
        return self.own_id.partition("/")[2]

    def under(self, prompt: str, text: str) -> TutorModel:
        """Return this model under a prompt of this name, as a model of its own."""
        named = {"id": f"{self.id}@{prompt}", "name": self.name and f"{self.name}@{prompt}"}
        return self.model_copy(update={**named, "prompt": prompt, "system_prompt": text})

    def identity(self) -> dict[str, Any]:
        """The fields that decide about responses: without price, limits and display name."""
        prompt = {} if self.system_prompt is None else {"system_prompt": self.system_prompt}
        parameters = {"parameters": given} if (given := self.parameters.given) else {}
        return {**self.address(), **prompt, **parameters}

    def address(self) -> dict[str, Any]:
        """The model with its endpoint and options, without its system prompt."""
        named = {} if self.endpoint is None else {"endpoint": self.endpoint}
        # A version that does not know prompts would call the provider by the id.
        named |= {} if self.prompt is None else {"prompt": self.prompt}
        return {"id": self.id, "options": self.options, "base_url": self.base_url, **named}


class Grader(BaseModel):
    """The model that grades the exploratory vector of each scored response."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: TutorModel

    max_tokens: MaxTokens = 64
    """The most output tokens of a grading; a model that reasons first needs more than a number."""

    rubric: Rubric = RUBRIC

    @model_validator(mode="after")
    def _rubric_is_the_prompt(self) -> Grader:
        if self.model.system_prompt is not None:
            raise ValueError("the rubric is the system prompt of a grader: leave out system_prompt")
        if self.model.parameters.given:
            raise ValueError("a grader has max_tokens beside its model: leave out parameters")
        return self

    @cached_property
    def key(self) -> str:
        """The content name of all that decides a grade besides the text."""
        return content_name("grader", self.identity(), 32)

    def identity(self) -> dict[str, Any]:
        """The fields that decide about grades: without price, limits and display name."""
        decide = self.parameters.model_dump(mode="json")
        return {"model": self.model.identity(), "parameters": decide, "rubric": self.rubric}

    @property
    def parameters(self) -> Parameters:
        """The sampling parameters of a grading."""
        return Parameters(max_tokens=self.max_tokens, temperature=0)


class Student(BaseModel):
    """The model that plays the student after the opening, by the scenarios' pressures."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: TutorModel

    max_tokens: MaxTokens = 200
    """The most output tokens of a message; a model that reasons first needs more."""

    temperature: Temperature = 0.7
    seed: Annotated[int, Field(ge=0, le=2**31 - 1)] = 0
    """Tells students of one model apart; models that take a seed get one that follows from it."""

    prompt: StudentPrompt = STUDENT_PROMPT

    @model_validator(mode="after")
    def _prompt_is_its_own(self) -> Student:
        if self.model.system_prompt is not None:
            raise ValueError("a student has a prompt of its own: leave out system_prompt")
        if self.model.parameters.given:
            raise ValueError("a student has its parameters beside its model: leave out parameters")
        return self

    def identity(self) -> dict[str, Any]:
        """The fields that decide about messages: without price, limits and display name."""
        others = self.model_dump(mode="json", exclude={"model"})
        return {"model": self.model.identity(), **others}

    @property
    def parameters(self) -> Parameters:
        """The sampling parameters of a message."""
        return Parameters(max_tokens=self.max_tokens, temperature=self.temperature)

    @property
    def told(self) -> str:
        """The student's model, prompt and seed in words."""
        return f"{self.model.display_name} (prompt {self.prompt}, seed {self.seed})"


class StopWhen(BaseModel):
    """The precision at which an experiment buys no more repeats."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    interval: Annotated[float, Field(gt=0, lt=0.5)]
    """The farthest that a model's 95 % interval of `overall` may reach to either side of its
    score: 0.05 is what readers call ± 0.05."""


FEWEST_ROUNDS: Final = 2
"""The repeats before the first look at the intervals: one tells nothing of how repeats differ."""

Weight = Annotated[float, Field(ge=0, le=1_000_000, allow_inf_nan=False)]
"""The weight of a vector in `overall`, beside those of the other vectors."""

VectorWeights = dict[str, dict[str, Weight]]
"""By dimension and vector, as a configuration has them."""


def weighted_name(profile: str, weights: Mapping[str, Mapping[str, float]]) -> str:
    """Return the name of a profile with other weights of its vectors."""
    return f"{profile}+{content_name('w', weights, 12)}"


class Manifest(BaseModel):
    """The frozen plan: models, scenarios, prompts, repeats and the profile that scores them."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    models: Annotated[tuple[TutorModel, ...], Field(min_length=1)]
    scenarios: Annotated[tuple[Scenario, ...], Field(min_length=1)]
    system_prompt: str = DEFAULT_SYSTEM_PROMPT
    parameters: Parameters = Parameters()
    repeats: Annotated[int, Field(ge=1, le=MOST_REPEATS)] = 3
    stop_when: Annotated[
        StopWhen | None,
        # An older version reads only plans without this field.
        Field(exclude_if=lambda stop: stop is None),
    ] = None
    """None: all repeats are bought. Otherwise each further one of all runs only where an interval
    is too wide, up to `repeats`."""

    stopped_after: Annotated[int | None, Field(exclude_if=lambda repeats: repeats is None)] = None
    """The repeats after which `stop_when` ended the experiment; None: it did not. The store writes
    it with the completion."""

    profile: str = CANONICAL
    use_llm_exploratory: Annotated[
        Grader | None,
        # An older version reads only plans without this field.
        Field(exclude_if=lambda grader: grader is None),
    ] = None
    """The model that grades the exploratory vector; None: the profile measures it alone."""

    student: Annotated[
        Student | None,
        # An older version reads only plans without this field.
        Field(exclude_if=lambda student: student is None),
    ] = None
    """The model that plays the student; None: the scenarios have all messages."""

    deadline_hours: Annotated[float, Field(gt=0, le=24 * 31)] = 24.0
    """Hours from an experiment's creation until its deadline. Does not enter the measurement."""

    priority: Annotated[
        Priority,
        # An older version refuses a configuration with this field.
        Field(exclude_if=lambda priority: priority == NORMAL),
    ] = NORMAL
    """`high`: of a runner's calls to a model that others wait for, too, every second one is for
    this experiment. Does not enter the measurement."""

    budget: Dollars | None = None
    """The most USD that an experiment may cost; None: no cap. Does not enter the measurement."""

    weightings: Annotated[
        dict[str, VectorWeights], Field(exclude_if=lambda weightings: not weightings)
    ] = Field(default_factory=dict)
    """Other weights of the vectors that configurations of the plan named, by the name of the
    profile with them. They read the same scores: none enters the measurement."""

    name: Annotated[Name | None, Field(exclude_if=lambda name: name is None)] = None
    """The experiment's name for people. Does not enter the measurement."""

    notes: Annotated[
        str | None, Field(max_length=2_000, exclude_if=lambda notes: notes is None)
    ] = None
    """Free text for readers of the results. Does not enter the measurement."""

    pinned_at: Annotated[datetime | None, Field(exclude_if=lambda at: at is None)] = None
    """The time at which a person pinned the experiment for the default leaderboard; None: it is not
    pinned. The store writes it (D-025). Does not enter the measurement."""

    @model_validator(mode="after")
    def _names_are_unique(self) -> Manifest:
        for kind, names in (
            ("model", [model.id for model in self.models]),
            ("scenario", [scenario.id for scenario in self.scenarios]),
        ):
            twice = sorted(name for name, count in Counter(names).items() if count > 1)
            if twice:
                raise ValueError(f"{kind} {', '.join(twice)} is listed more than once")
        return self

    @model_validator(mode="after")
    def _profile_takes_grades(self) -> Manifest:
        if self.use_llm_exploratory is not None and not self.profile.endswith(SUFFIX):
            raise ValueError(f"use_llm_exploratory needs a profile that ends with {SUFFIX}")
        return self

    @model_validator(mode="after")
    def _student_is_playable(self) -> Manifest:
        if self.student is not None and (why := unplayable(self.scenarios)) is not None:
            raise ValueError(f"student: {why}")
        return self

    @model_validator(mode="after")
    def _weights_are_known(self) -> Manifest:
        # A profile's name tells no weights: whoever reads the plan can read scores by them.
        for name, weights in self.weightings.items():
            if name == weighted_name(stored_profile(name), weights):
                remember(name, weights)
        return self

    @cached_property
    def conditions_id(self) -> str:
        """The content name of the conditions; figures under equal conditions compare.

        Repeats do not enter it: they change the uncertainty of the figures alone.
        """
        return content_name("cond", self._conditions())

    @cached_property
    def asking_id(self) -> str:
        """The content name of the conditions without the profile.

        Figures by one profile compare under equal ones, whichever profile an experiment's own is.
        """
        conditions = self._conditions()
        return content_name(
            "asking", {name: each for name, each in conditions.items() if name != "profile"}
        )

    @cached_property
    def manifest_id(self) -> str:
        """The plan's content name, without prices, limits, names, notes, deadline and budget."""
        # D-025: with prices in it, a corrected price would start another experiment.
        models = [model.identity() for model in self.models]
        stop = {} if self.stop_when is None else {"stop_when": self.stop_when.model_dump()}
        plan = {**self._conditions(), "repeats": self.repeats, "models": models, **stop}
        return content_name("man", plan)

    def _conditions(self) -> dict[str, Any]:
        conditions = self.model_dump(
            mode="json",
            include={"scenarios", "system_prompt", "parameters", "profile"},
            # No tutor sees metadata: a corrected one starts no other experiment.
            exclude={"scenarios": {"__all__": {"metadata"}}},
        )
        for name, each in (("grader", self.use_llm_exploratory), ("student", self.student)):
            if each is not None:
                conditions[name] = each.identity()
        return conditions

    def keeping(self, stored: Manifest) -> Manifest:
        """Return this plan as a new one of a stored experiment: with its name and weightings, with
        the notes and the pin that only the stored plan has, and with no lower priority.
        """
        kept = {
            "name": stored.name or self.name,
            "notes": stored.notes if self.notes is None else self.notes,
            "pinned_at": stored.pinned_at if self.pinned_at is None else self.pinned_at,
            "weightings": {**stored.weightings, **self.weightings},
            "stopped_after": stored.stopped_after,
            "priority": stored.priority if self.priority == NORMAL else self.priority,
        }
        return self.model_copy(update=kept)

    def system_prompt_of(self, model: TutorModel) -> str:
        """Return the model's own system prompt, or else the plan's."""
        return self.system_prompt if model.system_prompt is None else model.system_prompt

    def parameters_of(self, model: TutorModel) -> Parameters:
        """Return the plan's sampling parameters, with the model's own in place of some."""
        given = model.parameters.given
        return self.parameters.model_copy(update=given) if given else self.parameters

    def fixed_messages(self, scenario: Scenario) -> tuple[str, ...]:
        """Return what the student says whatever happens: the opening alone where a model plays."""
        return scenario.student_messages if self.student is None else (scenario.prompt,)

    @property
    def due_repeats(self) -> int:
        """The repeats that the experiment has: fewer than planned where `stop_when` ended it."""
        return self.repeats if self.stopped_after is None else self.stopped_after

    @property
    def runs_of_a_round(self) -> int:
        """The runs of one repeat of all models in all scenarios."""
        return len(self.models) * len(self.scenarios)

    @property
    def planned_runs(self) -> int:
        return self.runs_of_a_round * self.due_repeats

    def begun_repeats(self, done: int) -> int:
        """Return the repeats that were requested, once so many runs have ended.

        With `stop_when` a repeat begins once all runs of the one before have ended.
        """
        if self.stop_when is None or self.stopped_after is not None:
            return self.due_repeats
        return min(self.repeats, max(FEWEST_ROUNDS, -(-done // self.runs_of_a_round)))

    @property
    def called_models(self) -> tuple[TutorModel, ...]:
        """All models that the plan calls: those under test, the student's and the grader."""
        others = (self.student, self.use_llm_exploratory)
        return (*self.models, *(each.model for each in others if each is not None))

    @property
    def request_groups(self) -> frozenset[str]:
        """The groups of its requests in the runners' queue."""
        return request_groups(self.models_by_id, self.priority)

    @property
    def has_batches(self) -> bool:
        """Whether calls of a model go into its provider's batches."""
        return any(model.options.get("batch") is True for model in self.called_models)

    @property
    def has_prices(self) -> bool:
        """Whether a model of the plan has a price."""
        return any(model.price is not None for model in self.called_models)

    @cached_property
    def models_by_id(self) -> dict[str, TutorModel]:
        return {model.id: model for model in self.models}

    @cached_property
    def twins(self) -> Mapping[str, str]:
        """Scenarios with the words and dimension of an earlier one, by id, with the earlier id."""
        first: dict[tuple[str, ...], str] = {}
        twins = {}
        for scenario in self.scenarios:
            known = first.setdefault((scenario.dimension, *scenario.wording), scenario.id)
            if known != scenario.id:
                twins[scenario.id] = known
        return twins

    @cached_property
    def scenarios_by_id(self) -> dict[str, Scenario]:
        return {scenario.id: scenario for scenario in self.scenarios}


class Experiment(BaseModel):
    """One execution of a manifest, pending or done."""

    model_config = ConfigDict(frozen=True)

    manifest: Manifest
    occasion: str | None = None
    """The name that tells executions of one manifest apart, such as an ISO week."""

    created_at: datetime
    completed_at: datetime | None = None
    state: ExperimentState = ExperimentState.OPEN
    submitted: bool = True
    """Whether services may carry it out; `run` alone carries out an experiment it began."""

    experiment_id: str = Field(
        default_factory=lambda given: _experiment_id(given["manifest"], given["occasion"])
    )
    """The content name of plan and occasion. A stored experiment keeps its stored id: a newer
    version may derive it from fields that this version does not know."""

    @cached_property
    def understood(self) -> bool:
        """Whether this version knows all fields of the id, and so can run the experiment."""
        return self.experiment_id == _experiment_id(self.manifest, self.occasion)

    @property
    def conditions_id(self) -> str:
        """The manifest's conditions; a unique name for an experiment that is not understood."""
        known = self.manifest.conditions_id
        return known if self.understood else content_name("cond", [known, self.experiment_id])

    @property
    def asking_id(self) -> str:
        """The manifest's `asking_id`; a unique name for an experiment that is not understood."""
        known = self.manifest.asking_id
        return known if self.understood else content_name("asking", [known, self.experiment_id])

    @property
    def deadline_at(self) -> datetime:
        """The time from which on pending runs are overdue."""
        return self.created_at + timedelta(hours=self.manifest.deadline_hours)

    @cached_property
    def conversation_keys(self) -> Mapping[tuple[str, str], str]:
        """The conversation key for each model id and scenario id.

        Equal keys mean the same question to the same model on the same occasion, in any experiment.
        """
        asked, said = self.asked_of_models, self.said_in_scenarios
        return {
            (model, scenario): content_name("conv", [*asked[model], messages], 32)
            for scenario, messages in said.items()
            for model in asked
        }

    @property
    def reuse_keys(self) -> frozenset[str]:
        """The names under which later experiments find this one: its conversations and grader."""
        grader = self.manifest.use_llm_exploratory
        conversations = frozenset(self.conversation_keys.values())
        return conversations if grader is None else conversations | {grader.key}

    @cached_property
    def asked_of_models(self) -> Mapping[str, tuple[str, str]]:
        """Names of how each model is asked, by its id: of its setting, and of its address."""
        return {
            model.id: (self._setting_of(model), content_name("m", model.address(), 32))
            for model in self.manifest.models
        }

    @cached_property
    def said_in_scenarios(self) -> Mapping[str, str]:
        """The name of what the student says in each scenario, by its id.

        Where a model plays the student, it is the name of all that decides about its messages.
        """
        return {each.id: self._said_in(each) for each in self.manifest.scenarios}

    def _said_in(self, scenario: Scenario) -> str:
        student = self.manifest.student
        if student is None:
            return content_name("s", [scenario.id, *scenario.student_messages], 32)
        decides = scenario.model_dump(include={"id", "prompt", "persona", "pressures", "key"})
        return content_name("s", [student.identity(), decides], 32)

    def _setting_of(self, model: TutorModel) -> str:
        """The content name of all that decides an answer besides model and student."""
        manifest = self.manifest
        setting = {
            "system_prompt": manifest.system_prompt_of(model),
            "parameters": manifest.parameters_of(model).model_dump(mode="json"),
            "occasion": self.occasion,
        }
        return content_name("asked", setting, 32)

    def runs(self, first: int = 1) -> Iterator[Run]:
        """Yield every run of the plan from this repeat on. Models take turns, so that no model
        waits for another.
        """
        manifest = self.manifest
        for repeat in range(first, manifest.due_repeats + 1):
            for scenario in manifest.scenarios:
                for model in manifest.models:
                    yield self.run(model.id, scenario, repeat)

    def up_to(self, repeats: int) -> Experiment:
        """Return the experiment as if `stop_when` ended it after these repeats."""
        stopped = repeats if repeats < self.manifest.repeats else None
        manifest = self.manifest.model_copy(update={"stopped_after": stopped})
        return self.model_copy(update={"manifest": manifest})

    def outside_plan(self, run: Run, turn: int = 1) -> str | None:
        """Return why the plan does not hold this turn of a run; None: it does.

        It holds everything of an experiment that only a newer version understands.
        """
        if not self.understood:
            return None
        manifest = self.manifest
        scenario = manifest.scenarios_by_id.get(run.scenario_id)
        if scenario is None or run.model_id not in manifest.models_by_id:
            return f"not in the plan: scenario {run.scenario_id!r} for model {run.model_id!r}"
        for stands, told in (
            (run.repeat <= manifest.repeats, f"repeat {run.repeat} of {manifest.repeats}"),
            (turn <= scenario.turns, f"turn {turn} of {scenario.turns}"),
            (run.dimension == scenario.dimension, f"dimension {run.dimension!r}"),
            (run.is_named_by_its_parts, f"the id {run.run_id!r}"),
        ):
            if not stands:
                return f"not in the plan: {told}"
        return None

    def run(self, model_id: str, scenario: Scenario, repeat: int) -> Run:
        """Return one run of the plan; `repeat` counts from 1."""
        return Run(
            run_id=run_id(self.experiment_id, model_id, scenario.id, repeat),
            experiment_id=self.experiment_id,
            model_id=model_id,
            scenario_id=scenario.id,
            dimension=scenario.dimension,
            repeat=repeat,
        )


def _experiment_id(manifest: Manifest, occasion: str | None) -> str:
    return experiment_id(manifest.manifest_id, occasion)
