"""The steps that every consumer shares: decode, handle, publish, settle.

A container's consumer loop and a Lambda's entry point receive and settle messages in different
ways; the steps between are here, and a handler cannot tell which of the two called it.
"""
