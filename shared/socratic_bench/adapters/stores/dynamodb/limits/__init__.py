"""The role `SharedLimits` in DynamoDB."""
