"""What outlives a boot: files written at the confirm, and files of others that would win."""

from tests.ring_apply.one_node import OneNode

NETPLAN = "/etc/netplan/60-tetraspark-ring.yaml"
YAML = "network: {{version: 2, ethernets: {{{dev}: {{addresses: [10.1.1.1/24]}}}}}}"


def test_files_are_written_at_the_confirm_and_removed_by_the_rollback(node: OneNode) -> None:
    before = node.state()
    assert node.apply()["ok"]
    assert node.sh("ls /etc/netplan") == ""
    assert node.confirm(node.wanted.files)["ok"]
    assert node.sh(f"stat -c %a {NETPLAN}").strip() == "600"
    assert node.sh(f"cat {NETPLAN}") == node.planned.netplan
    assert node.sh("cat /run/systemctl").split() == ["daemon-reload"]
    back = node.rollback()
    assert back["ok"] and not back["differences"] and not back["leftovers"]
    assert node.state() == before


def test_after_a_boot_the_unit_brings_all_of_it_back(node: OneNode) -> None:
    """The kernel's part is gone, as after a boot; the unit's command is run as it stands."""
    assert node.apply()["ok"]
    assert node.confirm(node.wanted.files)["ok"]
    node.sh(
        "pkill -x marker; sleep 0.1; ip neigh del {to} dev {dev}; ip route del {to}; {del}; "
        "tc qdisc del dev {in} clsact; ip link set {other} mtu 1500".format(**node.words())
    )
    assert len(node.states()) == 7
    start = node.sh("sed -n 's/^ExecStart=//p' /etc/systemd/system/tetraspark-ring.service")
    said = node.sh(start.strip())
    assert '"ok": true' in said
    assert node.states() == {}


def test_a_file_of_somebody_elses_is_not_overwritten(node: OneNode) -> None:
    assert node.apply()["ok"]
    node.sh(f"echo '# mine' >{NETPLAN}")
    refused = node.confirm(node.wanted.files)
    assert refused["problems"][0]["where"] == f"file {NETPLAN}"
    assert node.sh(f"cat {NETPLAN}") == "# mine\n"
    assert node.ask("look")["journal"]["phase"] == "applied"


def test_problem_22_addresses_that_were_flushed_and_files_that_bring_them_back(
    node: OneNode,
) -> None:
    """NetworkManager takes hand-made addresses away, and leaves files that make them again."""
    assert node.apply()["ok"]
    node.sh("ip addr flush dev {other}".format(**node.words()))
    (key,) = [key for key in node.states() if key.startswith("address")]
    assert node.states()[key] == "missing"
    leftover = "/etc/netplan/90-NM-1c7e.yaml"
    node.sh(f"echo '{YAML}' >{leftover}".format(**node.words()))
    found = node.ask("look", files=node.wanted.files)
    assert found["leftovers"] == [leftover] and found["later"] == [leftover]
    assert node.apply()["ok"]
    back = node.rollback()
    assert back["leftovers"] == [leftover]
    assert node.sh("ls /etc/netplan").split() == ["90-NM-1c7e.yaml"]


def test_problem_24_a_later_file_wins(node: OneNode) -> None:
    """On in our file and off in the one read after it is off: so ours is not written."""
    assert node.apply()["ok"]
    node.sh(f"echo '{YAML}' >/etc/netplan/70-site.yaml".format(**node.words()))
    node.sh("echo 'network: {version: 2}' >/etc/netplan/80-other.yaml")
    refused = node.confirm(node.wanted.files)
    assert [one["where"] for one in refused["problems"]] == ["/etc/netplan/70-site.yaml"]
    node.sh("mv /etc/netplan/70-site.yaml /etc/netplan/10-site.yaml")
    assert node.confirm(node.wanted.files)["ok"]


def test_problem_23_an_mtu_that_fell_back(node: OneNode) -> None:
    """Firmware put 1500 back: it is set, and a rollback leaves what it found."""
    node.sh("ip link set {other} mtu 1500".format(**node.words()))
    before = node.state()
    assert node.states()["link {other}".format(**node.words())] == "different"
    assert node.apply()["ok"] and node.states() == {}
    assert node.rollback()["outcome"] == "rolled back"
    assert node.state() == before


def test_weakness_5_only_a_roce_v2_gid_of_the_planned_address_counts(node: OneNode) -> None:
    port = "/sys/class/infiniband/rocep1s0f0/ports/1"
    address = node.wanted.addresses["rocep1s0f0"].split(".")
    mapped = "0000:0000:0000:0000:0000:ffff:{:02x}{:02x}:{:02x}{:02x}".format(*map(int, address))
    node.sh(
        f"mkdir -p {port}/gids {port}/gid_attrs/types; cd {port}; "
        f"echo fe80:0000:0000:0000:0000:0000:0000:0001 >gids/0; echo RoCE v2 >gid_attrs/types/0; "
        f"echo {mapped} >gids/4; echo IB/RoCE v1 >gid_attrs/types/4; "
        f"echo {mapped} >gids/11; echo RoCE v2 >gid_attrs/types/11"
    )
    assert node.ask("look")["gids"] == {
        "rocep1s0f0": 11,
        "rocep1s0f1": None,
        "roceP2p1s0f0": None,
        "roceP2p1s0f1": None,
    }
