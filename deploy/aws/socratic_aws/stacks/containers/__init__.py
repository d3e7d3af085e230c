"""The services as tasks on Fargate, and what only tasks need."""
