#!/usr/bin/env bash
# Guess: an emulator of DynamoDB carries out a transaction once for one ClientRequestToken. That is
#   what DynamoDB promises for ten minutes, and the only reason to send the token.
# Versions: moto 5.2.5, boto3 1.43.117; Python 3.11.
# Seen: moto ignores the token. The second, equal request adds to the counter once more.
# Output:
#   one transaction, sent twice with one token: the counter is 2
# For users: a test over moto cannot show that a repeated transaction counts once. It also fails for
#   right code that repeats a request after a lost answer. MiniStack 1.5.33 honours the token.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder"
read -ra packages <<< "${PACKAGES:-moto==5.2.5 boto3==1.43.117 botocore==1.43.117}"
timeout 600 "$folder/bin/pip" install --quiet "${packages[@]}"
unset AWS_PROFILE AWS_ENDPOINT_URL
export AWS_CONFIG_FILE="$folder/none" AWS_SHARED_CREDENTIALS_FILE="$folder/none"
export AWS_ACCESS_KEY_ID=none AWS_SECRET_ACCESS_KEY=none
timeout 60 "$folder/bin/python" - << 'PYTHON'
import sys

import boto3
from moto import mock_aws

KEY = {"id": {"S": "calls"}}
ADD = {
    "Update": {
        "TableName": "counters",
        "Key": KEY,
        "UpdateExpression": "ADD amount :one",
        "ExpressionAttributeValues": {":one": {"N": "1"}},
    }
}

with mock_aws():
    table = boto3.client("dynamodb", region_name="eu-west-1")
    table.create_table(
        TableName="counters",
        KeySchema=[{"AttributeName": "id", "KeyType": "HASH"}],
        AttributeDefinitions=[{"AttributeName": "id", "AttributeType": "S"}],
        BillingMode="PAY_PER_REQUEST",
    )
    for _ in range(2):
        table.transact_write_items(TransactItems=[ADD], ClientRequestToken="call-1")
    counter = table.get_item(TableName="counters", Key=KEY)["Item"]["amount"]["N"]

print("one transaction, sent twice with one token: the counter is", counter)
if counter != "2":
    sys.exit("The behaviour changed: moto honours the token of a repeated transaction.")
PYTHON
