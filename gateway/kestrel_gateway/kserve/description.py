"""What Triton's clients may ask about the server and the model: who answers, its inputs, its configuration.

It follows from the registry of inputs, and reads as what Triton itself says of model_repository/moondream.
"""

from typing import Any

from kestrel_core.protocol.about import own_version
from kestrel_core.protocol.fields import INPUTS, Field
from kestrel_core.protocol.names import shown
from kestrel_gateway.errors import UnknownModel
from kestrel_gateway.house import ALIAS

VERSION = "1"
OUTPUT = "TEXT_OUTPUT"
NOT_READY = "Model version not ready"
EXTENSIONS = ("model_configuration", "parameters", "generate")
OF_AN_INPUT = {"is_shape_tensor": False, "allow_ragged_batch": False}


def check_model(name: str, version: str = "") -> None:
    """In the words that Triton has for it."""
    if name != ALIAS:
        raise UnknownModel(f"Request for unknown model: '{shown(name)}' is not found")
    if version not in ("", VERSION):
        raise UnknownModel(f"Request for unknown model: '{ALIAS}' version {shown(version)} is not found")


def datatype(field: Field) -> str:
    return field.type.replace("STRING", "BYTES")


def server_metadata() -> dict[str, Any]:
    return {"name": "kestrel-gateway", "version": own_version(), "extensions": list(EXTENSIONS)}


def model_metadata() -> dict[str, Any]:
    return {
        "name": ALIAS,
        "versions": [VERSION],
        "platform": "python",
        "inputs": [
            {"name": field.name, "datatype": datatype(field), "shape": list(field.dims)} for field in INPUTS
        ],
        "outputs": [{"name": OUTPUT, "datatype": "BYTES", "shape": [1]}],
    }


def model_config() -> dict[str, Any]:
    return {
        "name": ALIAS,
        "platform": "",
        "backend": "python",
        "runtime": "",
        "version_policy": {"latest": {"num_versions": 1}},
        "max_batch_size": 0,
        "input": [_configured(field) for field in INPUTS],
        "output": [
            {
                "name": OUTPUT,
                "data_type": "TYPE_STRING",
                "dims": [1],
                "label_filename": "",
                "is_shape_tensor": False,
                "is_non_linear_format_io": False,
            }
        ],
        "batch_input": [],
        "batch_output": [],
        "optimization": {
            "priority": "PRIORITY_DEFAULT",
            "input_pinned_memory": {"enable": True},
            "output_pinned_memory": {"enable": True},
            "gather_kernel_buffer_threshold": 0,
            "eager_batching": False,
        },
        "instance_group": [
            {
                "name": f"{ALIAS}_0",
                "kind": "KIND_MODEL",
                "count": 1,
                "gpus": [],
                "secondary_devices": [],
                "profile": [],
                "passive": False,
                "host_policy": "",
            }
        ],
        "default_model_filename": "model.py",
        "cc_model_filenames": {},
        "metric_tags": {},
        "parameters": {},
        "model_warmup": [],
        "model_transaction_policy": {"decoupled": True},
    }


def _configured(field: Field) -> dict[str, Any]:
    return {
        "name": field.name,
        "data_type": f"TYPE_{field.type}",
        "format": "FORMAT_NONE",
        "dims": list(field.dims),
        **OF_AN_INPUT,
        "optional": field.default != "required",
        "is_non_linear_format_io": False,
    }
