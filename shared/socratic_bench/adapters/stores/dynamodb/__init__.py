"""The store in one DynamoDB table, one folder a role. docs/design/dynamodb.md explains the keys."""
