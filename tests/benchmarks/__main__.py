"""All benchmarks, one after another: `make bench`."""

from __future__ import annotations

from tests.benchmarks import (
    api,
    aws,
    aws_pipeline,
    dynamodb_queries,
    embedded,
    fidelity_coverage,
    interval_coverage,
    pages,
    services,
    slow_model,
    slow_model_in_functions,
    sqs_requests,
    start,
    visible_latency,
)
from tests.benchmarks.calls import call_cost, many_endpoints
from tests.benchmarks.scale import __main__ as scale

if __name__ == "__main__":
    interval_coverage.main()
    fidelity_coverage.main()
    api.main()
    embedded.main()
    services.main()
    aws_pipeline.main()
    sqs_requests.main()
    aws.main()
    dynamodb_queries.main()
    many_endpoints.main()
    slow_model.main()
    slow_model_in_functions.main()
    call_cost.main()
    visible_latency.main()
    pages.main()
    scale.main()
    start.main()
