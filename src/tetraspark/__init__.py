"""tetraspark: DeepSeek-V4.1-Flash on four DGX Sparks as one OpenAI-compatible server."""

__version__ = "0.1.0"
