"""What Triton loads. The model itself is in `kestrel_core.triton.model`, and may be subclassed here."""

from kestrel_core.triton.model import TritonPythonModel

__all__ = ["TritonPythonModel"]
