"""What a launch resolves on each node, and what it refuses: nothing is guessed."""

from dataclasses import replace
from ipaddress import IPv4Interface
from pathlib import Path

import pytest

from tests.line.launch_facts import (
    SITE,
    V1,
    fabric,
    facts,
    function,
    gid,
    image_env,
    links,
    with_gids,
)
from tetraspark.errors import Problem, RunError, UsageError
from tetraspark.fabric.function import Function, NodeFabric
from tetraspark.fleet.facts import Facts, Said
from tetraspark.line.launch import Launch, NodeLaunch, resolve, wanted
from tetraspark.line.launch_image import IMAGE
from tetraspark.line.launch_interface import hosts_entries, read_interfaces
from tetraspark.site.load import LoadedSite, load_site

F0, P0 = "rocep1s0f0", "roceP2p1s0f0"
F1, P1 = "rocep1s0f1", "roceP2p1s0f1"


class Rack:
    """A site of two nodes and what was found on them; both are well until a test changes one."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "two.toml"
        self.text = SITE
        self.facts = {
            "spark1": facts("spark1", links(enP7s7="10.0.0.1/24", enp1s0f0np0="10.0.22.1/24")),
            "spark2": facts(
                "spark2", links(enP7s7="10.0.0.2/24", enp1s0f0np0="10.0.22.2/24"), home="/home/bob"
            ),
        }
        self.functions = {
            "spark1": [function(F0, "10.0.22.1/24"), function(P0, "10.0.23.1/24")],
            "spark2": [function(F0, "10.0.22.2/24"), function(P0, "10.0.23.2/24")],
        }

    def write(self, old: str, new: str) -> None:
        assert self.text.count(old) == 1
        self.text = self.text.replace(old, new)

    def swap(self, node: str, number: int, one: Function) -> None:
        self.functions[node][number] = one

    def load(self) -> LoadedSite:
        self.path.write_text(self.text)
        return load_site(self.path)

    def resolve(self) -> Launch:
        fabrics: dict[str, NodeFabric] = {
            node: fabric(node, *found) for node, found in self.functions.items()
        }
        found: dict[str, Facts] = self.facts
        return resolve(self.load(), found, fabrics)

    def problem(self) -> Problem:
        """Return the one problem of this rack."""
        with pytest.raises(RunError) as caught:
            self.resolve()
        assert len(caught.value.problems) == 1, caught.value
        return caught.value.problems[0]


@pytest.fixture
def rack(tmp_path: Path) -> Rack:
    return Rack(tmp_path)


def test_each_node_gets_its_own_values(rack: Rack) -> None:
    launch = rack.resolve()
    assert launch.head_address == "10.0.0.1"
    assert launch[0].env == {
        "GLOO_SOCKET_IFNAME": "enP7s7",
        "NCCL_SOCKET_IFNAME": "=enP7s7",
        "NCCL_IB_HCA": "=rocep1s0f0,roceP2p1s0f0",
        "NCCL_IB_ADDR_FAMILY": "AF_INET",
        "NCCL_IB_ROCE_VERSION_NUM": "2",
    }
    assert launch.nccl is not None
    assert launch.nccl.name == "switch"
    assert launch.nccl.environment["NCCL_NET"] == "IB"
    assert [str(one) for one in launch[1].gids] == [
        "rocep1s0f0 index 3 (10.0.22.2)",
        "roceP2p1s0f0 index 3 (10.0.23.2)",
    ]
    assert launch.as_dict()["nodes"][1]["home"] == "/home/bob"


def test_a_network_that_the_site_chooses_for_nccl_is_left_alone(rack: Rack) -> None:
    rack.text += '[env]\nNCCL_NET = "Socket"\n'
    nccl = rack.resolve().nccl
    assert nccl is not None
    assert "NCCL_NET" not in nccl.environment
    assert [one.value for one in nccl.kept] == ["Socket"]


def test_L08_the_interface_is_that_of_each_nodes_own_address(rack: Rack) -> None:
    rack.facts["spark2"] = facts("spark2", links(enP2p1s0f1np1="10.0.0.2/24"))
    launch = rack.resolve()
    assert launch[0].env["GLOO_SOCKET_IFNAME"] == "enP7s7"
    assert launch[1].env["GLOO_SOCKET_IFNAME"] == "enP2p1s0f1np1"


def with_image(one: Facts, said: Said | None) -> Facts:
    commands = {name: value for name, value in one.commands.items() if name != IMAGE}
    return replace(one, commands={**commands, **({IMAGE: said} if said else {})})


def test_L08_interfaces_that_an_image_brings_along_are_warned_of(rack: Rack) -> None:
    said = image_env("NCCL_SOCKET_IFNAME=enp9", "TP_SOCKET_IFNAME=enp9", "UCX_TLS=tcp")
    rack.facts["spark2"] = with_image(rack.facts["spark2"], said)
    launch = rack.resolve()
    assert launch[1].env["NCCL_SOCKET_IFNAME"] == "=enP7s7"
    (warning,) = launch.warnings
    assert warning.where == "spark2"
    assert warning.seen == "the image sets TP_SOCKET_IFNAME=enp9"


def test_L27_an_index_that_an_image_brings_along_ends_the_launch(rack: Rack) -> None:
    said = image_env("NCCL_IB_GID_INDEX=3")
    rack.facts["spark1"] = with_image(rack.facts["spark1"], said)
    problem = rack.problem()
    assert (problem.where, problem.seen) == ("spark1", "the image sets NCCL_IB_GID_INDEX=3")


@pytest.mark.parametrize("said", [None, Said(1, "[]", "No such image"), Said(0, "[{}]", "")])
def test_an_image_that_cannot_be_seen_is_told(rack: Rack, said: Said | None) -> None:
    rack.facts["spark1"] = with_image(rack.facts["spark1"], said)
    (warning,) = rack.resolve().warnings
    assert "cannot be seen" in warning.seen


def test_an_image_without_variables_is_fine(rack: Rack) -> None:
    rack.facts["spark1"] = with_image(rack.facts["spark1"], image_env())
    assert rack.resolve().warnings == ()


def test_what_is_wanted_names_the_sites_image(rack: Rack) -> None:
    argv = wanted(rack.load()).commands[IMAGE]
    assert argv == ("docker", "image", "inspect", "line:one")


def test_L09_without_a_match_there_is_an_error_and_no_eth0(rack: Rack) -> None:
    rack.facts["spark2"] = facts("spark2", links(enp1s0f0np0="10.0.22.2/24"))
    problem = rack.problem()
    assert problem.where.startswith("spark2 (")
    assert "two.toml" in problem.where
    assert "10.0.0.2" in problem.seen
    assert "10.0.22.2 on enp1s0f0np0" in problem.seen
    assert "eth0" not in str(problem)


def test_an_address_on_a_dead_device_or_on_two_is_refused(rack: Rack) -> None:
    rack.facts["spark2"] = facts("spark2", links(enP7s7_down="10.0.0.2/24"))
    assert "enP7s7, which is DOWN" in rack.problem().seen
    rack.facts["spark2"] = facts("spark2", links(a="10.0.0.2/24", b="10.0.0.2/24"))
    assert "10.0.0.2 on a, 10.0.0.2 on b" in rack.problem().seen


def test_addresses_that_cannot_be_read_are_an_error(rack: Rack) -> None:
    rack.facts["spark1"] = facts("spark1", 'Object "-j" is unknown')
    assert "gave none" in rack.problem().seen
    assert read_interfaces('[{"ifname": 1}, 2]') == ()


def test_a_name_means_what_the_nodes_own_hosts_file_says(rack: Rack) -> None:
    rack.write('host = "10.0.0.2"', 'host = "spark2.lan"')
    hosts = "127.0.0.1 localhost spark2.lan\n127.0.1.1 spark2.lan\n10.0.0.2\tSpark2.LAN # fabric\n"
    rack.facts["spark2"] = replace(rack.facts["spark2"], files={"/etc/hosts": hosts})
    assert rack.resolve()[1].address == "10.0.0.2"
    assert not hosts_entries("# 10.0.0.2 spark2.lan\nbroken\n::1 spark2.lan\n", "spark2.lan")


def test_a_name_in_no_hosts_file_means_the_address_that_ssh_reached(rack: Rack) -> None:
    rack.write('host = "10.0.0.2"', 'host = "spark2"')
    rack.facts["spark2"] = replace(rack.facts["spark2"], ssh="10.0.22.2")
    launch = rack.resolve()
    assert (launch[1].interface, launch[1].address) == ("enp1s0f0np0", "10.0.22.2")


def test_what_ssh_reached_says_nothing_where_ssh_went_elsewhere(rack: Rack) -> None:
    rack.write('host = "10.0.0.2"', 'host = "spark2", ssh_host = "spark2.lan"')
    rack.facts["spark2"] = replace(rack.facts["spark2"], ssh="10.0.0.2")
    assert "a name that is not in its /etc/hosts" in rack.problem().seen


def test_L13_home_is_that_of_each_nodes_login(rack: Rack) -> None:
    launch = rack.resolve()
    assert [node.paths["model.path"] for node in launch.nodes] == [
        "/home/alice/v41",
        "/home/bob/v41",
    ]


def test_workers_have_their_own_folders_where_the_site_says_so(rack: Rack) -> None:
    rack.write('recipe = "release"', 'recipe = "canary"')
    rack.text += '[engram]\ndir = "/data/e"\nworker_dir = "~/e"\n'
    rack.text += '[env]\nSGLANG_RUST_BUILD_MODE = "never"\n'
    launch = rack.resolve()
    assert [node.paths["engram.dir"] for node in launch.nodes] == ["/data/e", "/home/bob/e"]


@pytest.mark.parametrize("path", ["v41", "../v41", "~carol/v41"])
def test_a_path_that_no_node_can_take_is_a_usage_error(rack: Rack, path: str) -> None:
    rack.write('path = "~/v41"', f'path = "{path}"')
    with pytest.raises(UsageError, match=r"two.toml:7: `model.path`"):
        rack.resolve()


def test_L27_a_moved_index_is_found_by_address_and_is_never_set(rack: Rack) -> None:
    netdev = rack.functions["spark1"][1].netdev
    table = (
        gid(1, "fe80::1", netdev),
        gid(2, "10.0.23.1", netdev, V1),
        gid(3, "", netdev),
        gid(4, "10.0.23.1", netdev),
    )
    rack.swap("spark1", 1, with_gids(rack.functions["spark1"][1], *table))
    launch = rack.resolve()
    assert [one.index for one in launch[0].gids] == [3, 4]
    assert all("NCCL_IB_GID_INDEX" not in node.env for node in launch.nodes)


def test_L27_an_entry_that_is_empty_or_link_local_is_never_used(rack: Rack) -> None:
    one = rack.functions["spark1"][1]
    local = replace(one, addresses=(IPv4Interface("169.254.7.1/16"),))
    table = (gid(1, "fe80::1", one.netdev), gid(3, "", one.netdev))
    rack.swap("spark1", 1, with_gids(local, *table, gid(5, "169.254.7.1", one.netdev)))
    problem = rack.problem()
    assert problem.where == f"spark1 {P0}"
    assert "no usable GID" in problem.seen
    assert "169.254.7.1/16" in problem.seen


def test_L27_an_entry_of_another_address_is_named_and_not_taken(rack: Rack) -> None:
    one = rack.functions["spark2"][0]
    rack.swap("spark2", 0, with_gids(one, gid(5, "10.9.9.9", one.netdev)))
    problem = rack.problem()
    assert problem.where == f"spark2 {F0}"
    assert "in its table: 10.9.9.9 (RoCE v2, now at index 5)" in problem.seen


def test_two_addresses_on_a_port_are_refused_for_nccl_would_choose(rack: Rack) -> None:
    one = rack.functions["spark1"][0]
    two = replace(one, addresses=(*one.addresses, IPv4Interface("10.0.99.1/24")))
    rack.swap("spark1", 0, with_gids(two, *one.gids, gid(5, "10.0.99.1", one.netdev)))
    assert "2 usable GIDs" in rack.problem().seen


def test_the_collectives_of_one_recipe_need_one_index(rack: Rack) -> None:
    rack.write('recipe = "release"', 'recipe = "canary-roce"')
    rack.text += '[env]\nSGLANG_RUST_BUILD_MODE = "never"\n'
    env = rack.resolve()[0].env
    assert (env["B12X_ROCE_HCA"], env["B12X_ROCE_GID_INDEX"]) == (f"{F0},{P0}", "3")
    rack.swap("spark1", 1, function(P0, "10.0.23.1/24", index=5))
    problem = rack.problem()
    assert f"{F0} index 3 (10.0.22.1), {P0} index 5 (10.0.23.1)" in problem.seen
    assert 'recipe = "canary"' in problem.fix


def test_L29_mixed_port_names_are_an_error_for_the_node_that_differs(rack: Rack) -> None:
    rack.write(f'["{F0}", "{P0}"]', f'["{F0}"]')
    rack.functions["spark2"] = [
        function(F0, "", state="1: DOWN"),
        function(F1, "10.0.22.2/24", index=5),
    ]
    problem = rack.problem()
    assert problem.where == f"spark2 {F0}"
    assert "1: DOWN" in problem.seen
    assert problem.wanted.endswith(f"on spark2: {F1}")
    assert f'nodes[1].devices = ["{F1}"]' in problem.fix
    rack.write('host = "10.0.0.2"', f'host = "10.0.0.2", devices = ["{F1}"]')
    launch = rack.resolve()
    assert launch[1].env["NCCL_IB_HCA"] == f"={F1}"
    assert [one.index for one in launch[1].gids] == [5]


def test_L29_a_device_that_is_not_there_is_named_with_those_that_are(rack: Rack) -> None:
    rack.functions["spark1"] = [function(F1, "10.0.22.1/24"), function(P0, "10.0.23.1/24")]
    problem = rack.problem()
    assert (problem.where, problem.seen) == (f"spark1 {F0}", "no such RDMA device")
    assert f"{F1}, {P0}" in problem.wanted


def test_L41_the_twin_on_the_same_cable_is_told(rack: Rack) -> None:
    rack.swap("spark1", 0, function(F0, "10.0.22.1/24", state="1: DOWN"))
    assert f"({P0}, on the same cable, is ACTIVE)" in rack.problem().seen


@pytest.mark.parametrize("state", [None, "INACTIVE", "2: INIT"])
def test_a_state_that_is_not_seen_to_be_active_is_not(rack: Rack, state: str | None) -> None:
    rack.swap("spark1", 0, replace(rack.functions["spark1"][0], state=state))
    assert rack.problem().where == f"spark1 {F0}"


def test_all_problems_of_all_nodes_come_at_once(rack: Rack) -> None:
    rack.facts["spark1"] = facts("spark1", links(x="10.9.0.1/24"))
    rack.functions["spark2"] = []
    with pytest.raises(RunError) as caught:
        rack.resolve()
    assert [one.where.split()[0] for one in caught.value.problems] == ["spark1", "spark2", "spark2"]


def test_L28_a_variable_without_a_value_cannot_be_made() -> None:
    with pytest.raises(ValueError, match="NCCL_IB_GID_INDEX"):
        NodeLaunch("spark1", "/root", "10.0.0.1", "a", (), {"NCCL_IB_GID_INDEX": ""}, {})
