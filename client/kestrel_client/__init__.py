"""An asynchronous client for the Triton model `moondream`."""
