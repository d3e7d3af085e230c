"""The metrics of the runner, as Prometheus reads them."""
