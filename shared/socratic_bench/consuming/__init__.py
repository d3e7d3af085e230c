"""What every way of consuming shares: decode, handle, publish, settle.

A container's consumer loop and a Lambda's entry point differ in where messages come from and how
they are settled; everything between is here, and handlers cannot tell which of them called.
"""
