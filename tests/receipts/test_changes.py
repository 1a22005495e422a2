"""What changed between two receipts, in words."""

import copy
import json
from typing import Any

import pytest

from tests.receipts.made import LOCAL, node, receipt, setting
from tetraspark.fleet.meminfo import GIB
from tetraspark.receipts.changes import changes

# An update of kernel and driver that took 8.6 GiB of an idle node, as it was reported.
L47 = json.loads(
    '{"good":{"kernel":"6.17.0-1026","driver":"580.159.03","idle_gib":110.6},'
    '"now":{"kernel":"6.17.0-1031","driver":"580.173.02","idle_gib":102.0}}'
)


def told(**after: Any) -> list[str]:
    return [str(one) for one in changes(receipt(), receipt("20261102-000000-000001", **after))]


def of_l47(state: dict[str, Any]) -> dict[str, Any]:
    idle = int(state["idle_gib"] * GIB)
    return {"kernel": state["kernel"], "driver": state["driver"], "idle_bytes": idle}


def test_L47_kernel_driver_and_idle_memory_are_said_in_words() -> None:
    good = receipt(nodes=(node(**of_l47(L47["good"])),))
    now = receipt("20261102-000000-000001", nodes=(node(**of_l47(L47["now"])),))
    assert [str(one) for one in changes(good, now)] == [
        "kernel (spark1): 6.17.0-1026 -> 6.17.0-1031",
        "driver (spark1): 580.159.03 -> 580.173.02",
        "idle memory (spark1): 110.6 GiB -> 102.0 GiB, 8.6 GiB less",
    ]


def test_nothing_changed() -> None:
    assert told() == []


def test_what_is_looked_up_at_each_start_is_no_change() -> None:
    plan = copy.deepcopy(receipt().plan)
    plan["settings"][1]["value"] = "31999"
    assert told(plan=plan) == []


@pytest.mark.parametrize(
    ("was", "now"), [(110 * GIB, 110 * GIB - GIB // 4), (None, 90 * GIB), (110 * GIB, None)]
)
def test_slight_or_unknown_idle_memory_is_no_change(was: int | None, now: int | None) -> None:
    before = receipt(nodes=(node(idle_bytes=was),))
    assert changes(before, receipt(nodes=(node(idle_bytes=now),))) == []


def test_a_key_of_the_site_has_its_line() -> None:
    (line,) = (n for n, one in enumerate(LOCAL.splitlines(), 1) if "kv_tokens" in one)
    text = LOCAL.replace("kv_tokens = 8192", "kv_tokens = 4096")
    assert told(site_text=text) == [
        f"site key engine.kv_tokens (/sites/local.toml:{line}): 8192 -> 4096"
    ]


def test_keys_that_came_and_went() -> None:
    gone = "\n".join(one for one in LOCAL.splitlines() if "kv_tokens" not in one)
    found = told(site_text=gone + '\n[env]\nA = "1"\n')
    first = receipt().id
    assert any(one.startswith("site key engine.kv_tokens (/sites/local.toml:") for one in found)
    assert any(one.endswith(f" of {first}): 8192 -> absent") for one in found)
    (line,) = (n for n, one in enumerate((gone + "\n[env]\nA").splitlines(), 1) if one == "A")
    assert f"site key env.A (/sites/local.toml:{line}): absent -> '1'" in found


def test_another_file_with_the_same_keys_is_said_to_be_one() -> None:
    assert told(site_sha256="f" * 64) == [
        f"site file (/sites/local.toml): same keys; SHA-256 {'e' * 12} -> {'f' * 12}"
    ]


def test_image_checkpoint_firmware_and_program() -> None:
    image = {"tag": "line:1", "id": "sha256:" + "9" * 64, "digests": ()}
    model = {"folder": "/srv/model", "files": 3, "bytes": 12, "sha256": "8" * 64}
    changed = node(image=image, model=model, nics={"rocep1s0f0": "28.46"})
    assert told(nodes=(changed,), tetraspark="0.2.0") == [
        "firmware of rocep1s0f0 (spark1): 28.45 -> 28.46",
        f"checkpoint (spark1): /srv/model {'b' * 12}, 12 bytes -> /srv/model {'8' * 12}, 12 bytes",
        f"image (spark1): line:1 {'a' * 12} -> line:1 {'9' * 12}",
        "version (tetraspark): 0.1.0 -> 0.2.0",
    ]


def test_the_same_image_by_another_tag_is_no_change() -> None:
    other = receipt().nodes[0].image
    assert other is not None
    assert told(nodes=(node(image=other.model_copy(update={"tag": "x:2"})),)) == []


def test_nodes_that_came_went_or_were_not_reached() -> None:
    silent = node(kernel=None, driver=None, board=None, nics=None, image=None, model=None)
    assert told(nodes=(node("spark2"),)) == [
        "node (spark1): there -> absent",
        "node (spark2): absent -> there",
    ]
    assert "kernel (spark1): 6.17.0-1026 -> not seen" in told(nodes=(silent,))


def test_what_tetraspark_chose_and_what_the_engine_took() -> None:
    plan = copy.deepcopy(receipt().plan)
    plan["settings"][2] = setting("--sleep-on-idle", "2", "idle ranks leave the cores alone")
    plan["settings"][0]["value"] = "2"
    found = told(plan=plan, effective=({"key": "tp_size", "value": 2, "same": False},))
    assert found == [
        "setting --sleep-on-idle (plan): given -> 2",
        "in force: tp_size (/server_info): as planned -> 2",
    ]


def test_what_a_start_went_on_despite_is_a_change() -> None:
    before = receipt(tolerated=())
    found = [str(one) for one in changes(before, receipt(tolerated=("RDMA.MTU", "LINK.WIDTH")))]
    assert found == ["started despite (doctor): nothing -> RDMA.MTU, LINK.WIDTH"]


def test_a_transport_that_was_left_out_is_a_change() -> None:
    plan = {**copy.deepcopy(receipt().plan), "transport": "off"}
    before = receipt(plan={**plan, "transport": "shm"})
    found = [str(one) for one in changes(before, receipt(plan=plan))]
    assert found == ["transport (plan): shm -> off"]
    # A receipt from before plans told it.
    assert changes(receipt(), receipt(plan=plan)) == []


def test_a_site_that_is_no_toml_any_more_does_not_end_the_comparison() -> None:
    before = receipt(site_text='name = "a[hidden]')
    found = changes(before, receipt(nodes=(node(kernel="7.0"),), site_text='name = "a[hidden]'))
    assert [str(one) for one in found] == ["kernel (spark1): 6.17.0-1026 -> 7.0"]


def test_as_json_each_change_has_its_sentence() -> None:
    (one,) = changes(receipt(), receipt(tetraspark="0.2.0"))
    assert one.as_dict() == {
        "what": "version",
        "where": "tetraspark",
        "before": "0.1.0",
        "after": "0.2.0",
        "note": "",
        "text": "version (tetraspark): 0.1.0 -> 0.2.0",
    }
