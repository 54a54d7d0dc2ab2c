"""The chart as Helm itself renders it, held against the schemas of Kubernetes.

Helm's library and the schemas are large, so they are no part of the development requirements: `make chart`
installs them (`helm-python-sdk`, `kubernetes-validate`) and runs these tests.
"""

from pathlib import Path
from typing import Any

import pytest
import yaml

WHERE = "left out: `make chart` installs what it needs"
helm = pytest.importorskip("helm_python", reason=WHERE)
schemas = pytest.importorskip("kubernetes_validate", reason=WHERE)

CHART = Path(__file__).parents[2] / "deploy" / "helm" / "vettance"
#: The oldest that the chart says it can do with, one in between, and the newest that is known here.
VERSIONS = ("1.25", "1.30", schemas.latest_version())
SHARED = {"database": {"enabled": True}, "redis": {"enabled": True}}
CASES: dict[str, dict[str, Any]] = {
    "embedded": {},
    "embedded on a claim": {"persistence": {"existingClaim": "mine"}},
    "embedded on a class of storage": {"persistence": {"storageClass": "fast"}, "resources": {}},
    "shared": SHARED,
    "one process on a database": {"database": {"enabled": True}, "replicas": 1},
    "everything": {
        **SHARED,
        "extraEnv": {"VETTANCE_KEEP_EVENTS": "400", "VETTANCE_PROXIES": 1},
        "persistence": {"existingClaim": "mine"},
        "metrics": {"serviceMonitor": True, "from": {"app": "prometheus"}},
        "podAnnotations": {"a": "b"},
        "nodeSelector": {"disk": "ssd"},
        "tolerations": [{"key": "k", "operator": "Exists"}],
        "affinity": {"nodeAffinity": {}},
    },
}


def rendered(values: dict[str, Any], name: str = "risk") -> dict[str, dict[str, Any]]:
    """Render the chart; returns the objects by kind and name."""
    with helm.Chart.load(str(CHART)) as chart:
        texts = chart.render(values, name=name, namespace="prod")
    found = [one for text in texts.values() for one in yaml.safe_load_all(text) if one]
    return {f"{one['kind']}/{one['metadata']['name']}": one for one in found}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("version", VERSIONS)
def test_what_is_rendered_is_what_kubernetes_takes(case: str, version: str) -> None:
    for one in rendered(CASES[case]).values():
        if one["kind"] != "ServiceMonitor":  # It is the Prometheus Operator's.
            schemas.validate(one, version, strict=True)


def test_the_store_says_what_kind_of_workload_it_is() -> None:
    embedded = rendered({})["StatefulSet/risk"]["spec"]
    assert embedded["replicas"] == 1
    assert embedded["volumeClaimTemplates"][0]["metadata"]["name"] == "data"
    shared = rendered(SHARED)["Deployment/risk"]["spec"]
    assert shared["replicas"] == 2
    assert "strategy" not in shared
    alone = rendered(CASES["one process on a database"])["Deployment/risk"]["spec"]
    assert alone["strategy"] == {"type": "Recreate"}


def test_a_release_of_the_name_of_the_service_gets_no_settings_from_it() -> None:
    pod = rendered({}, name="vettance")["StatefulSet/vettance"]["spec"]["template"]["spec"]
    assert pod["enableServiceLinks"] is False


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"redis": {"enabled": True}}, "redis.enabled needs database.enabled"),
        ({"database": {"enabled": True}}, "several replicas need redis.enabled"),
    ],
)
def test_values_that_cannot_work_are_refused_in_a_sentence(values: dict[str, Any], said: str) -> None:
    with pytest.raises(helm.HelmError, match=said):
        rendered(values)
