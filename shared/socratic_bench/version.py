"""The version of every distribution, image and document of this project. It stands here alone."""

__version__ = "0.1.0"
