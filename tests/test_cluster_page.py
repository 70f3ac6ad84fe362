"""The files on the page about clusters are valid."""

import json
import shlex
import subprocess
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from busenv.cli import parser
from tests.support.pages import ROOT, blocks

PAGE = ROOT / "docs/cluster.md"
CLOUD, JOB = map(yaml.safe_load, blocks(PAGE, "yaml"))
(SLURM,) = blocks(PAGE, "bash")


def schema() -> dict[str, Any]:
    spec = find_spec("ray")
    if spec is None or spec.origin is None:
        pytest.skip("Ray is not installed")
    path = Path(spec.origin).parent / "autoscaler/ray-schema.json"
    return json.loads(path.read_text(encoding="utf-8"))


def test_the_cloud_file_is_valid_by_rays_own_schema() -> None:
    jsonschema.validate(CLOUD, schema())
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**CLOUD, "workers": 20}, schema())
    assert CLOUD["head_node_type"] in CLOUD["available_node_types"]
    assert "[train,report,cluster]" in CLOUD["setup_commands"][-1]


def test_the_kubernetes_manifest_has_the_form_of_a_job() -> None:
    assert (JOB["apiVersion"], JOB["kind"]) == ("ray.io/v1", "RayJob")
    spec = JOB["spec"]["rayClusterSpec"]
    constraints = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    assert f"ray=={spec['rayVersion']}\n" in constraints
    program, *words = shlex.split(JOB["spec"]["entrypoint"])
    arguments = parser().parse_args(words)
    assert (program, arguments.ray) == ("busenv", "auto")


def test_the_slurm_script_is_a_script() -> None:
    done = subprocess.run(["bash", "-n"], input=SLURM, text=True, capture_output=True)
    assert (done.returncode, done.stderr) == (0, "")
    last = shlex.split(SLURM[SLURM.index("busenv train") :])
    assert parser().parse_args(last[1:]).ray == "$head:$port"
