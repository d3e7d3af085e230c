"""The endpoints by resource, and the parts that several of them share."""
