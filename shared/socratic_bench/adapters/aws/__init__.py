"""What an operator keeps in AWS for services: configuration, keys."""
