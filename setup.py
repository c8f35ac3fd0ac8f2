"""What pyproject.toml cannot say: two folders of the checkout become parts of packages in the wheel.

`model_repository/` stays where Triton's users look for it, and `client/samples/` beside the client. A wheel
has no checkout around it, so there they lie inside `kestrel_core` and `kestrel_client`.
"""

from setuptools import find_packages, setup

MOVED = {
    "kestrel_core.model_repository": "model_repository",
    "kestrel_client.samples": "client/samples",
}

setup(
    packages=[
        *find_packages(include=["kestrel_core", "kestrel_core.*"]),
        *find_packages("client"),
        *find_packages("gateway"),
        *find_packages("tools"),
        *MOVED,
    ],
    package_dir={
        "kestrel_client": "client/kestrel_client",
        "kestrel_gateway": "gateway/kestrel_gateway",
        "kestrel_tools": "tools/kestrel_tools",
        **MOVED,
    },
)
