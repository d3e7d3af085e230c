"""The store in one DynamoDB table; `store.py` joins its roles.

docs/design/dynamodb.md explains the keys.
"""
