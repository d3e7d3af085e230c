"""The Dockerfile of the services, and the compose file that builds and starts them."""

import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import yaml
from pydantic_settings import BaseSettings

from socratic_api.settings import ApiSettings
from socratic_curator.settings import CuratorProcessSettings
from socratic_judge.settings import JudgeProcessSettings
from socratic_runner.settings import RunnerProcessSettings

ROOT = Path(__file__).parents[3]
COMPOSE = ROOT / "deploy" / "compose"
SETTINGS: dict[str, type[BaseSettings]] = {
    "runner": RunnerProcessSettings,
    "judge": JudgeProcessSettings,
    "curator": CuratorProcessSettings,
    "api": ApiSettings,
}
SERVICES = tuple(SETTINGS)
VARIABLE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


@dataclass(frozen=True)
class Image:
    """A Dockerfile, as its instructions: the keyword and what follows it, in one line.

    The arguments of a build that the compose file gives stand in them.
    """

    instructions: tuple[tuple[str, str], ...]

    @classmethod
    def of(cls, service: str, **variables: str) -> "Image":
        build = compose(**variables)["services"][service]["build"]
        assert build["target"] == "service"
        return cls.read(COMPOSE / build["context"] / build["dockerfile"], **build["args"])

    @classmethod
    def read(cls, file: Path, **arguments: str) -> "Image":
        text = file.read_text()
        for name, value in arguments.items():
            text = re.sub(rf"\${name}\b", str(value), text)
        lines = [line for line in text.splitlines() if not line.lstrip().startswith("#")]
        whole = "\n".join(lines).replace("\\\n", " ")
        words = [line.split(maxsplit=1) for line in whole.splitlines() if line.strip()]
        return cls(tuple((keyword, " ".join(rest.split())) for keyword, rest in words))

    def stages(self) -> list["Image"]:
        starts = [i for i, (keyword, _) in enumerate(self.instructions) if keyword == "FROM"]
        ends = [*starts[1:], len(self.instructions)]
        pairs = zip(starts, ends, strict=True)
        return [Image(self.instructions[start:end]) for start, end in pairs]

    @property
    def name(self) -> str:
        return self.only("FROM").partition(" AS ")[2]

    @property
    def base(self) -> str:
        return self.only("FROM").split()[0]

    @property
    def final(self) -> "Image":
        return self.target("service")

    def target(self, name: str) -> "Image":
        """A stage after the stage that it begins with."""
        [stage] = [each for each in self.stages() if each.name == name]
        if any(each.name == stage.base for each in self.stages()):
            return Image(self.target(stage.base).instructions + stage.instructions)
        return stage

    def all(self, keyword: str) -> list[str]:
        return [rest for name, rest in self.instructions if name == keyword]

    def only(self, keyword: str) -> str:
        (rest,) = self.all(keyword)
        return rest

    def assignments(self, keyword: str) -> dict[str, str]:
        pairs = [pair for rest in self.all(keyword) for pair in shlex.split(rest)]
        return dict(pair.split("=", 1) for pair in pairs)


def interpolated(value, environment):
    """The compose file's variables replaced, by their defaults where they are not given."""
    if isinstance(value, str):
        return VARIABLE.sub(lambda m: environment.get(m[1], m[2] or ""), value)
    if isinstance(value, list):
        return [interpolated(each, environment) for each in value]
    if isinstance(value, dict):
        return {key: interpolated(each, environment) for key, each in value.items()}
    return value


class Tagged(yaml.SafeLoader):
    """A reader of Compose's tags."""


def overridden(loader, node):
    """The value of `!override`, which is all that stands in its place."""
    if isinstance(node, yaml.SequenceNode):
        return loader.construct_sequence(node, deep=True)
    return loader.construct_mapping(node, deep=True)


Tagged.add_constructor("!override", overridden)


def compose(file: str = "compose.yaml", **environment):
    text = (COMPOSE / file).read_text()
    return interpolated(yaml.load(text, Tagged), environment)


def environment(service: str) -> dict[str, str]:
    """The environment of a service in its container: from its image and the compose file.

    Without what the image tells services of another kind.
    """
    in_image = Image.of(service).final.assignments("ENV")
    foreign = {"SOCRATIC_HEALTH_HOST", "SOCRATIC_HEALTH_PORT", "SOCRATIC_HOST", "SOCRATIC_PORT"}
    foreign -= {f"SOCRATIC_{name.upper()}" for name in SETTINGS[service].model_fields}
    told = {name: value for name, value in in_image.items() if name not in foreign}
    return told | compose()["services"][service]["environment"]


def listening_port(service: str) -> str:
    told = environment(service)
    return told.get("SOCRATIC_HEALTH_PORT") or told["SOCRATIC_PORT"]


def probed(test: list[str]) -> tuple[str, int | None, str]:
    *command, url = test
    assert command == ["python", "-m", "socratic_bench.hosting.http.probe"]
    parts = urlsplit(url)
    return parts.hostname or "", parts.port, parts.path
