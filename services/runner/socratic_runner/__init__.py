"""The runner: asks models the scenarios' questions and stores their responses."""
