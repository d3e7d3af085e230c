"""What a person runs: deploy, roll back, destroy."""
