"""The role `Experiments` in DynamoDB."""
