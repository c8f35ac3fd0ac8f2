"""What Triton loads. The model itself is in `kestrel_core.triton.model`, and may be subclassed here."""

import sys

# Triton's stub looks first into the folder it was started in, where a dis.py is not Python's own.
sys.path.sort(key=lambda folder: folder == "")

from kestrel_core.triton.model import TritonPythonModel

__all__ = ["TritonPythonModel"]
