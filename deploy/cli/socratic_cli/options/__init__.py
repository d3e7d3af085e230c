"""Options that several commands share, with the stores and brokers that they name."""
