"""The container files, as far as they can be checked without a container engine."""

import io
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from kestrel_core.cli.main import make_parser
from kestrel_core.cli.serve import options_of
from kestrel_core.config import RuntimeConfig
from kestrel_core.intake.models import MODELS
from kestrel_core.triton.ports import arranged
from kestrel_core.triton.restrictions import GRPC_HEADER, restriction_flags
from kestrel_core.triton.supervisor import LINGER_S
from kestrel_gateway.health import READY

kubernetes_validate = pytest.importorskip("kubernetes_validate")
yaml = pytest.importorskip("yaml")

DOCKER = Path(__file__).parents[2] / "docker"
KUBERNETES = DOCKER / "kubernetes"
# The oldest version that somebody may still run, and the newest.
KUBERNETES_VERSIONS = ("1.30", "1.37")


def load(path: Path) -> Any:
    return yaml.safe_load(path.read_text())


def manifests() -> dict[str, dict[str, Any]]:
    """What `kubectl apply -k` would send, by kind and name."""
    files = load(KUBERNETES / "kustomization.yaml")["resources"]
    found = [part for file in files for part in yaml.safe_load_all((KUBERNETES / file).read_text())]
    return {f"{part['kind']}/{part['metadata']['name']}": part for part in found}


def pod() -> dict[str, Any]:
    return dict(manifests()["Deployment/kestrel"]["spec"]["template"]["spec"])


def container() -> dict[str, Any]:
    [found] = pod()["containers"]
    return dict(found)


def dockerfile() -> list[list[str]]:
    """Instructions of the Dockerfile as words, the instruction first."""
    lines = (DOCKER / "Dockerfile").read_text().splitlines()
    kept = "\n".join(line for line in lines if not line.startswith("#"))
    return [line.split() for line in kept.replace("\\\n", " ").splitlines() if line.strip()]


def instruction(name: str) -> list[str]:
    [*_, last] = [words for words in dockerfile() if words[0] == name]
    return last[1:]


@pytest.mark.parametrize("path", sorted(DOCKER.rglob("*.y*ml")), ids=lambda path: path.name)
def test_every_yaml_file_parses(path: Path) -> None:
    assert all(yaml.safe_load_all(path.read_text()))


@pytest.mark.parametrize("path", sorted(DOCKER.rglob("*.sh")), ids=lambda path: path.name)
def test_every_shell_script_parses_and_may_be_run(path: Path) -> None:
    subprocess.run(["bash", "-n", path], check=True)
    assert path.stat().st_mode & 0o111


def test_the_compose_file_follows_its_schema() -> None:
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", "vendor.compose-spec"]
    done = subprocess.run([*command, DOCKER / "compose.yaml"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_compose_runs_the_server_on_a_gpu_and_the_demo_on_none() -> None:
    services = load(DOCKER / "compose.yaml")["services"]
    [device] = services["server"]["deploy"]["resources"]["reservations"]["devices"]
    assert device["capabilities"] == ["gpu"]
    assert "deploy" not in services["demo"]
    assert services["demo"]["environment"] == {"KESTREL_MODEL": "moondream-tiny", "KESTREL_DEVICE": "cpu"}
    for name in ("server", "demo"):
        assert services[name]["shm_size"] == "1g"
        assert {port.rpartition(":")[2] for port in services[name]["ports"]} == {"8080", "8000", "8001"}
        assert "command" not in services[name], "as the entry point starts it, Triton is behind the gateway"
    for name, service in services.items():
        assert all(
            port.startswith(("127.0.0.1:", "${KESTREL_BIND:-127.0.0.1}:")) for port in service["ports"]
        ), name


def test_no_file_of_ours_puts_triton_on_a_network() -> None:
    for path in (path for path in DOCKER.rglob("*") if path.is_file() and path.suffix not in (".md", ".py")):
        assert not re.search(r"--expose-triton|--port[= ]0", path.read_text()), path.name
    assert set(instruction("EXPOSE")) == {"8080", "8000", "8001"}
    given = make_parser().parse_args(["serve", "--host", "0.0.0.0", *container()["args"]])
    settled = arranged(options_of(given), Console(file=io.StringIO()))
    assert settled.is_guarded and settled.triton_host == "127.0.0.1"
    told = {port for name, (_, port) in settled.listeners.items() if name != "metrics"}
    assert {port["containerPort"] for port in container()["ports"]} == told


def test_prometheus_asks_the_gateway_for_its_own_numbers_and_the_engines() -> None:
    jobs = load(DOCKER / "prometheus/prometheus.yml")["scrape_configs"]
    asked = {(job["dns_sd_configs"][0]["port"], job.get("metrics_path", "/metrics")) for job in jobs}
    assert asked == {(8080, "/metrics"), (8080, "/metrics/engine")}
    endpoints = manifests()["PodMonitor/kestrel"]["spec"]["podMetricsEndpoints"]
    assert {(it["port"], it["path"]) for it in endpoints} == {("gateway", path) for _, path in asked}
    aliases = load(DOCKER / "compose.yaml")["x-server"]["networks"]["default"]["aliases"]
    assert [job["dns_sd_configs"][0]["names"] for job in jobs] == [aliases] * 2


def test_only_the_gateways_ports_of_a_pod_can_be_reached() -> None:
    policy = manifests()["NetworkPolicy/kestrel"]["spec"]
    assert policy["policyTypes"] == ["Ingress"]
    assert policy["podSelector"] == manifests()["Deployment/kestrel"]["spec"]["selector"]
    opened = {port["port"]: "from" in rule for rule in policy["ingress"] for port in rule["ports"]}
    assert opened == {"gateway": False, "http": True, "grpc": True}
    assert set(opened) == {port["name"] for port in container()["ports"]}


def test_compose_mounts_files_that_exist_and_volumes_it_declares() -> None:
    compose = load(DOCKER / "compose.yaml")
    sources = [
        mount.rsplit(":/", 1)[0] for s in compose["services"].values() for mount in s.get("volumes", [])
    ]
    assert sources
    for source in sources:
        volume = re.sub(r"\$\{\w+:-(\w+)\}", r"\1", source)
        assert (DOCKER / source).exists() if source.startswith("./") else volume in compose["volumes"]


@pytest.mark.parametrize("version", KUBERNETES_VERSIONS)
def test_the_manifests_follow_the_schema_of_kubernetes(version: str) -> None:
    kinds = set()
    for name, manifest in manifests().items():
        if manifest["apiVersion"].startswith("monitoring.coreos.com/"):
            continue  # the operator's own kind
        kubernetes_validate.validate(manifest, version, strict=True)
        kinds.add(name.partition("/")[0])
    wanted = {"Deployment", "Service", "NetworkPolicy", "HorizontalPodAutoscaler", "PodDisruptionBudget"}
    assert kinds >= wanted


def test_every_selector_finds_its_pods_and_every_port_is_one_of_theirs() -> None:
    found = manifests()
    labels = found["Deployment/kestrel"]["spec"]["template"]["metadata"]["labels"]
    ports = {port["name"]: port["containerPort"] for port in container()["ports"]}
    for service in ("kestrel", "kestrel-grpc"):
        spec = found[f"Service/{service}"]["spec"]
        assert spec["selector"] == labels
        for port in spec["ports"]:
            assert ports[port["targetPort"]] == port["port"]
    for kind in ("Deployment", "PodDisruptionBudget", "PodMonitor"):
        assert found[f"{kind}/kestrel"]["spec"]["selector"]["matchLabels"] == labels


def test_requests_are_spread_over_pods_whose_number_follows_the_load() -> None:
    found = manifests()
    assert found["Service/kestrel-grpc"]["spec"]["clusterIP"] == "None"
    scaled = found["HorizontalPodAutoscaler/kestrel"]["spec"]["scaleTargetRef"]
    assert f"{scaled['kind']}/{scaled['name']}" == "Deployment/kestrel"


def test_a_pod_has_one_gpu_shared_memory_and_no_rights() -> None:
    server = container()
    assert server["resources"]["limits"]["nvidia.com/gpu"] == "1"
    assert pod()["securityContext"]["runAsNonRoot"] and server["securityContext"]["readOnlyRootFilesystem"]
    volumes = {volume["name"]: volume for volume in pod()["volumes"]}
    mounts = {mount["mountPath"]: volumes[mount["name"]] for mount in server["volumeMounts"]}
    assert mounts["/dev/shm"]["emptyDir"]["medium"] == "Memory"
    claim = mounts["/models"]["persistentVolumeClaim"]["claimName"]
    assert f"PersistentVolumeClaim/{claim}" in manifests()


def test_every_variable_of_ours_is_a_setting_and_names_a_model_that_exists() -> None:
    environments = [{variable["name"]: variable.get("value", "") for variable in container()["env"]}]
    for service in ("server", "demo"):
        given = load(DOCKER / "compose.yaml")["services"][service]["environment"]
        environments.append({name: re.sub(r"\$\{\w+:-(.*)\}", r"\1", text) for name, text in given.items()})
    for environment in environments:
        assert RuntimeConfig.from_environment(environment).model in MODELS


def test_kubernetes_adds_no_variables_that_look_like_ours() -> None:
    """Beside a service called kestrel it would set KESTREL_PORT and its like."""
    assert pod()["enableServiceLinks"] is False


def test_a_pod_is_given_longer_than_its_end_takes() -> None:
    options = dict(word.split("=") for word in container()["args"] if "=" in word)
    spent_s = float(options["--drain-s"]) + float(options["--exit-timeout"]) + LINGER_S
    assert float(options["--drain-s"]) >= 5, "until every balancer knows"
    assert pod()["terminationGracePeriodSeconds"] >= spent_s + 10


def test_every_probe_asks_for_a_real_answer_which_the_first_signal_ends() -> None:
    for probe in ("startup", "readiness", "liveness"):
        asked = container()[f"{probe}Probe"]["httpGet"]
        assert asked == {"path": "/readyz", "port": "gateway"} and "/readyz" in READY
    liveness = container()["livenessProbe"]
    assert (
        liveness["periodSeconds"] * liveness["failureThreshold"] > pod()["terminationGracePeriodSeconds"]
    ), "a pod that ends is not killed for saying so"


def test_keys_are_read_from_where_they_are_mounted() -> None:
    text = (KUBERNETES / "deployment.yaml").read_text()
    [path] = re.findall(r"--api-keys=(\S+)", text)
    [mount] = [it for it in container()["volumeMounts"] if it["name"] == "keys"]
    assert Path(path).parent == Path(mount["mountPath"])


def test_the_autoscaler_adds_a_pod_before_the_batch_is_full() -> None:
    environment = {variable["name"]: variable.get("value") for variable in container()["env"]}
    metrics = manifests()["HorizontalPodAutoscaler/kestrel"]["spec"]["metrics"]
    targets = {m["pods"]["metric"]["name"]: int(m["pods"]["target"]["averageValue"]) for m in metrics}
    assert 0 < targets["kestrel_running_requests"] < int(environment["KESTREL_MAX_BATCH_SIZE"])
    [rule] = load(KUBERNETES / "prometheus-adapter-values.yaml")["rules"]["custom"]
    wanted = re.search(r'__name__=~"([^"]+)"', rule["seriesQuery"])
    assert wanted and set(wanted[1].split("|")) == set(targets)


def test_the_image_is_not_root_is_checked_and_fetches_nothing_by_url() -> None:
    user, _, group = instruction("USER")[0].partition(":")
    assert int(user) > 0 and int(group) > 0
    assert instruction("HEALTHCHECK")[-1].endswith('healthcheck.py"]')
    assert not [words for words in dockerfile() if words[0] == "ADD"]
    assert not re.search(r"https?://|curl|wget", (DOCKER / "Dockerfile").read_text())


def test_the_image_declares_no_secret() -> None:
    named = [word for words in dockerfile() if words[0] in ("ENV", "ARG") for word in words[1:]]
    assert named and not [word for word in named if re.search(r"(?i)token|key|secret|password", word)]


def test_the_image_copies_what_is_there_and_what_the_builder_is_sent() -> None:
    root = DOCKER.parent
    ignore = (DOCKER / "Dockerfile.dockerignore").read_text().split()
    sources = [word for words in dockerfile() if words[0] == "COPY" for word in words[1:-1]]
    assert sources
    for source in sources:
        assert (root / source).exists() and f"!{source}" in ignore


def test_the_image_installs_under_the_constraints() -> None:
    installs = [" ".join(words) for words in dockerfile() if words[0] == "RUN" and "install" in words]
    assert installs
    for line in installs:
        assert "-c constraints-gpu.txt" in line or "--no-deps" in line
    assert any("'.[gateway,gpu]'" in line for line in installs)


def test_the_entry_point_becomes_the_command_it_is_given(tmp_path: Path) -> None:
    """Flags are the server's; and exec, so that the container's signals reach it."""
    kestrel = tmp_path / "kestrel"
    kestrel.write_text('#!/bin/sh\necho "$$ $0 $*"\n')
    kestrel.chmod(0o755)
    cases = {
        "": "kestrel serve --host 0.0.0.0",
        "--demo -- --log-verbose=1": "kestrel serve --host 0.0.0.0 --demo -- --log-verbose=1",
        "kestrel schedule hello": "kestrel schedule hello",
        "kestrel gateway --upstream kestrel:8001": "kestrel gateway --upstream kestrel:8001",
    }
    for arguments, expected in cases.items():
        process = subprocess.Popen(
            [DOCKER / "entrypoint.sh", *shlex.split(arguments)],
            env={"PATH": f"{tmp_path}:/usr/bin:/bin"},
            stdout=subprocess.PIPE,
            text=True,
        )
        out, _ = process.communicate(timeout=10)
        pid, path, *rest = out.split()
        assert int(pid) == process.pid
        assert [Path(path).name, *rest] == expected.split()


def test_who_starts_triton_without_us_is_told_the_flags_that_close_it() -> None:
    readme = (DOCKER / "README.md").read_text()
    [block] = [
        block for block in re.findall(r"```bash\n(.*?)```", readme, re.DOTALL) if "restricted" in block
    ]
    script = 'tritonserver() { printf "%s\\0" "$@"; }\nSECRET=s3cret\n' + block
    said = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True).stdout
    flags = [flag for flag in said.split("\0") if "-restricted-" in flag]
    assert sorted(map(without_value, flags)) == sorted(map(without_value, restriction_flags("s3cret")))
    assert GRPC_HEADER in readme


def without_value(flag: str) -> tuple[str, bool]:
    """All of the flag but the value, and whether nobody can send that, since it holds a line break."""
    name, _, value = flag.rpartition("=")
    return name, "\n" in value
