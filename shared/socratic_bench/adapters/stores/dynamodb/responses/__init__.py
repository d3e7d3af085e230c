"""The role `Responses` in DynamoDB."""
