"""The role `Leases` in DynamoDB."""
