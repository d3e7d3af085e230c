"""The role `Aggregates` in DynamoDB."""
