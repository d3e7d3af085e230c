"""The broker on Amazon SQS, with SNS for broadcasts and S3 for what is too large."""
