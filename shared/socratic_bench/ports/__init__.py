"""The core's interfaces to the outside, as protocols. Each port has one contract suite."""
