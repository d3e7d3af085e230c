"""The alert rules ask for metrics that the services have, with labels that they have."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from socratic_api.experiment_metrics import ExperimentMetrics
from socratic_bench.consuming.queues import WORK_QUEUES
from socratic_bench.domain.experiment.manifest import TutorModel
from socratic_bench.hosting.metrics import (
    DepthMetrics,
    HttpMetrics,
    MessageMetrics,
    Metrics,
    ReadyMetrics,
)
from socratic_curator.entrypoints.container import add_reconciler_metrics
from socratic_runner.limits.limiters import ConcurrencyLimiters
from socratic_runner.metrics.scraped import (
    CallMetrics,
    ModelNames,
    add_breaker_metrics,
    add_lease_metrics,
    add_limit_metrics,
)
from socratic_runner.model_pool import ModelPool
from socratic_runner.models.registry import open_client

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy" / "alerts" / "socratic-bench.rules.yaml"
METRIC = re.compile(r"\bsocratic_\w+")
REGISTERING = {"Counter", "Gauge", "Histogram", "add_counter", "add_gauge"}
COUNTED = re.compile(r"_(total|bucket|count|sum)$")


def rules() -> list[dict[str, Any]]:
    [group] = yaml.safe_load(RULES.read_text())["groups"]
    return list(group["rules"])


def exported() -> set[str]:
    """The metrics of all services, without the suffixes that Prometheus adds to their names."""
    metrics = Metrics()
    for each in (
        MessageMetrics,
        DepthMetrics,
        ReadyMetrics,
        HttpMetrics,
        ExperimentMetrics,
    ):
        each(metrics)
    names, limiters = ModelNames(), ConcurrencyLimiters(most=1)
    limiters.limiter_for(TutorModel(id="reference/socratic"), None)
    CallMetrics(metrics, names)
    add_limit_metrics(metrics, limiters, names)
    add_breaker_metrics(metrics, ModelPool(open_client, limiters), names)
    add_lease_metrics(metrics, {})
    add_reconciler_metrics(metrics, {})
    return {family.name for family in metrics.registry.collect()}


def without_suffix(name: str) -> str:
    return COUNTED.sub("", name)


@pytest.mark.parametrize("rule", rules(), ids=lambda rule: rule["alert"])
def test_a_rule_asks_for_metrics_that_there_are_and_says_what_to_do(rule: dict[str, Any]) -> None:
    named = set(METRIC.findall(rule["expr"]))
    assert named
    assert {without_suffix(name) for name in named} <= exported()
    assert rule.keys() == {"alert", "expr", "for", "labels", "annotations"}
    assert rule["labels"]["severity"] in {"warning", "critical"}
    assert rule["annotations"].keys() == {"summary", "description"}


def test_a_rule_about_a_queue_names_one_that_there_is() -> None:
    named = re.findall(r'queue!?="([^"]+)"', RULES.read_text())
    assert set(named) <= {queue.name for queue in WORK_QUEUES}
    assert named


def registered_in(source: str) -> Iterator[str]:
    """The names of the metrics that a module registers."""
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Call(func=ast.Name(id=kind), args=arguments) if kind in REGISTERING:
                texts = [str(each.value) for each in arguments if isinstance(each, ast.Constant)]
                yield from filter(METRIC.fullmatch, texts)


def test_every_metric_that_a_module_registers_is_among_those_of_the_services() -> None:
    modules = [*ROOT.glob("shared/socratic_bench/**/*.py"), *ROOT.glob("services/*/*/**/*.py")]
    registered = {name for each in modules for name in registered_in(each.read_text())}
    assert registered
    assert registered <= exported(), "a function that registers it is missing in `exported`"


def test_the_documents_name_every_metric() -> None:
    text = "".join(page.read_text() for page in (ROOT / "docs").glob("*.md"))
    named = {without_suffix(name) for name in METRIC.findall(text)}
    assert {name for name in exported() if name.startswith("socratic_")} <= named
