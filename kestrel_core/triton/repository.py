"""A model repository of ours, as Triton will read it: the parameters of `moondream` and its instances."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kestrel_core.config import RuntimeConfig
from kestrel_core.protocol.errors import InvalidRequest, KestrelError


@dataclass(frozen=True, slots=True)
class ModelRepository:
    parameters: Mapping[str, str]
    num_instances: int

    def configs(self, environment: Mapping[str, str]) -> list[RuntimeConfig]:
        """One for each instance, as the model's own process will make it."""
        return [
            RuntimeConfig.from_parameters(self.parameters, instance, environment)
            for instance in range(self.num_instances)
        ]


def read_repository(folder: Path) -> ModelRepository:
    path = folder / "moondream/config.pbtxt"
    try:
        text = path.read_text()
    except OSError as error:
        raise KestrelError(f"{folder} is no model repository of ours: {error.strerror}") from None
    try:  # late: only `serve` needs them
        from google.protobuf import text_format
        from tritonclient.grpc.model_config_pb2 import ModelConfig
    except ImportError:
        raise KestrelError("tritonclient is not installed; pip install 'kestrel-triton[client]'") from None
    try:
        # A server may be newer than our client; it checks its own fields itself.
        config = text_format.Parse(text, ModelConfig(), allow_unknown_field=True)
    except text_format.ParseError as error:
        raise InvalidRequest(f"{path} cannot be read: {error}") from None
    return ModelRepository(
        {name: value.string_value for name, value in config.parameters.items()},
        max((group.count for group in config.instance_group if group.count), default=1),
    )
