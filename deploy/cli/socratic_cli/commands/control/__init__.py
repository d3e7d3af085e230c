"""Commands that follow and control experiments of running services."""
