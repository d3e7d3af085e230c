"""All benchmarks, one after another: `make bench`."""

from __future__ import annotations

from tests.benchmarks import (
    api_throughput,
    aws_pipeline,
    command_start,
    dynamodb_queries,
    dynamodb_units,
    embedded_throughput,
    function_start,
    scoring_speed,
    sqs_requests,
    start_up,
)
from tests.benchmarks.calls import call_cost, many_endpoints
from tests.benchmarks.scale import __main__ as scale
from tests.benchmarks.services import (
    dashboard_latency,
    distributed_throughput,
    slow_model,
    slow_model_in_functions,
    visible_latency,
)
from tests.benchmarks.statistics import fidelity_coverage, interval_coverage

if __name__ == "__main__":
    scoring_speed.main()
    interval_coverage.main()
    fidelity_coverage.main()
    api_throughput.main()
    embedded_throughput.main()
    distributed_throughput.main()
    aws_pipeline.main()
    sqs_requests.main()
    dynamodb_units.main()
    dynamodb_queries.main()
    many_endpoints.main()
    slow_model.main()
    slow_model_in_functions.main()
    call_cost.main()
    start_up.main()
    function_start.main()
    command_start.main()
    visible_latency.main()
    dashboard_latency.main()
    scale.main()
