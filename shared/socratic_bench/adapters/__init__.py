"""The implementations of the ports: brokers, stores, a clock. Only adapters import a driver."""
