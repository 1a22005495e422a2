"""Loading a site file: every refusal names its line, what was seen and what to write."""

import hashlib
import os
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from tetraspark.errors import Problem, UsageError
from tetraspark.site.load import LoadedSite, load_site
from tetraspark.site.schema import Site

SITES = Path(__file__).parents[2] / "sites"
LOCAL = (SITES / "local.toml").read_text()
SWITCH = (SITES / "four-sparks-switch.toml").read_text()
RING = (SITES / "four-sparks-ring.toml").read_text()


def load(tmp_path: Path, text: str | bytes) -> LoadedSite:
    path = tmp_path / "site.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_site(path)


def problems(tmp_path: Path, text: str | bytes) -> tuple[Problem, ...]:
    with pytest.raises(UsageError) as caught:
        load(tmp_path, text)
    assert caught.value.exit_code == 2
    for problem in caught.value.problems:
        assert problem.where.startswith(str(tmp_path / "site.toml"))
        assert problem.seen and problem.wanted
    return caught.value.problems


def line_of(text: str, piece: str) -> int:
    return text[: text.index(piece)].count("\n") + 1


def changed(text: str, old: str, new: str) -> str:
    assert text.count(old) >= 1
    return text.replace(old, new, 1)


# one change, one problem: base text, old, new, piece of the line it points at, words it says
CASES: list[tuple[str, str, str, str, tuple[str, ...]]] = [
    (LOCAL, "tp = 4", 'tp = "4"', "tp = ", ("'4'", "an integer from 1 to 64", "tp = 4")),
    (LOCAL, "tp = 4", "tp = 4.0", "tp = ", ("4.0", "tp = 4")),
    (LOCAL, "tp = 4", "tp = true", "tp = ", ("is true", "an integer")),
    (LOCAL, "tp = 4", "tp = 3", "tp = ", ("tp = 3", "[[nodes]] is 4", "site.toml:5", "set tp = 4")),
    (LOCAL, "tp = 4", "tp = 4\nep = 3", "ep = ", ("ep = 3", "divides tp", "1, 2, 4")),
    (LOCAL, "tp = 4", "tp = 4\nepp = 3", "epp", ("unknown key `engine.epp`", "`ep`")),
    (LOCAL, "tp = 4", "tp = 4\nserved_name = 'x'", "served_name = 'x'", ("`model.served_name`",)),
    (LOCAL, "mem_fraction = 0.5", "mem_fraction = 1", "mem_f", ("is 1", "below 1", "prefill")),
    (LOCAL, "mem_fraction = 0.5", "mem_fraction = true", "mem_f", ("is true", "a number")),
    (LOCAL, "port = 30000", "port = 70000", "port = ", ("70000", "to 65535")),
    (LOCAL, "port = 30000", 'port = "30000"', "port = ", ("without quotes", "port = 30000")),
    (LOCAL, "port = 30000", "", "[api]", ("`api.port` is missing", "add `port")),
    (LOCAL, 'kind = "local"', 'kind = "locl"', "kind", ("'locl'", 'did you mean "local"')),
    (LOCAL, 'served_name = "tiny"', 'served_name = ""', "served", ("is empty", "delete the line")),
    (LOCAL, 'served_name = "tiny"', "served_name = 7", "served", ("is 7", 'served_name = "7"')),
    (LOCAL, 'served_name = "tiny"', 'served_name = "a\\u0000"', "served", ("control char",)),
    (LOCAL, '"../models/tiny"', '"$HOME/tiny"', "path = ", ("$HOME", "not expanded", "~/")),
    (LOCAL, 'name = "node3"', 'name = "node0"', 'name = "node0"\n\n', ("used twice", "toml:6")),
    (LOCAL, 'name = "node3"', 'name = "Node 3"', 'name = "Node', ("Node 3", '"node-3"')),
    (LOCAL, 'name = "node3"', 'nam = "x"\nname = "node3"', "nam =", ("`nodes[3].nam`", "`name`")),
    (LOCAL, 'name = "node3"', 'name = "node3"\nhost = "10.0.0.4"', "host", ('kind` is "local"',)),
    (LOCAL, "[api]", "[weights]\nmode = 'local'\n[api]", "[weights]", ('kind` is "local"',)),
    (LOCAL, "[api]", "[api]\nkey_file = ' '", "key_file", ("`api.key_file` is empty",)),
    (LOCAL, "[api]", "[deadlines]\nload_seconds = 0\n[api]", "load_s", ("is 0", "from 1")),
    (LOCAL, "[api]", "[env]\nA = ''\n[api]", "A = ", ("`env.A` is empty",)),
    (LOCAL, "[api]", "[env]\nA = 1\n[api]", "A = ", ("`env.A` is 1", 'A = "1"')),
    (LOCAL, "[api]", "[env]\nPYTHONPATH = '/x'\n[api]", "PYTHONP", ("tetraspark's own",)),
    (LOCAL, "[api]", "[env]\nTETRASPARK_X = '1'\n[api]", "TETRASPARK_X", ("tetraspark's own",)),
    (LOCAL, "[api]", "[env]\nHF_TOKEN = 'hidden1'\n[api]", "HF_TOKEN", ("secret", "key_file")),
    (LOCAL, "[api]", "[env]\nPROXY = 'http://u:hidden1@h'\n[api]", "PROXY", ("credential",)),
    (LOCAL, "[api]", "[env]\n'A B' = 'x'\n[api]", "'A B'", ("'A B'", "letters")),
    (LOCAL, "tp = 4", "tp = 4\nextra_args = '--x \"a b\" -y'", "extra", ('["--x", "a b", "-y"]',)),
    (LOCAL, "tp = 4", "tp = 4\nextra_args = '--a b --api-key hidden1'", "extra",
     ('"--api-key", "[hidden]"',)),
    (LOCAL, "tp = 4", "tp = 4\nextra_args = [\n'-x',\n1]", "1]", ("`engine.extra_args[1]` is 1",)),
    (LOCAL, "[api]", "[env]\nA.B = 'x'\n[api]", "A.B", ("`env.A` is a table", "a string")),
    (LOCAL, "mem_fraction = 0.5", "mem_fraction = nan", "mem_f", ("is nan", "below 1")),
    (LOCAL, "tp = 4", "tp = 4\nextra_args = ['--foo bar']", "extra", ('"--foo", "bar"',)),
    (LOCAL, "tp = 4", "tp = 4\nextra_args = ['--j={\"a\": 1}']", "extra",
     ("\"--j\", '{\"a\": 1}'",)),
    (LOCAL, "tp = 4", "tp = 4\nextra_args = [\n'-x',\n'']", "'']", ("extra_args[1]` is empty",)),
    (LOCAL, "tp = 4", "tp = 4\nextra_args = [\n'-x',\n'--tp=2']", "'--tp=2", ("`engine.tp`",)),
    (LOCAL, "tp = 4", "tp = 4\nextra_args = ['--model-pa', 'x']", "extra", ("`model.path`",)),
    (LOCAL, "tp = 4", "tp = 4\nextra_args = ['--api-key', 'x']", "extra", ("`api.key_file`",)),
    (LOCAL, "tp = 4", "tp = 4\nextra_args = ['--admin-api-key=hidden1']", "extra", ("secret",)),
    (SWITCH, 'host = "10.0.0.1"', 'host = "127.0.0.1"', 'host = "127', ("loopback", "head")),
    (SWITCH, 'host = "10.0.0.1"', 'host = "0.0.0.0"', 'host = "0.0', ("unspecified",)),
    (SWITCH, 'host = "10.0.0.1"', 'host = "169.254.3.4"', 'host = "169', ("link-local",)),
    (SWITCH, 'host = "10.0.0.2"', 'host = "localhost"', 'host = "local', ("loopback", "worker")),
    (SWITCH, 'host = "10.0.0.1"', 'host = "::1"', 'host = "::1', ("loopback", "IPv4 only here")),
    (SWITCH, 'host = "10.0.0.1"', 'host = "fe80::1%eth0"', 'host = "fe', ("link-local", "IPv4")),
    (SWITCH, 'host = "10.0.0.1"', 'host = "[fd00::10]"', 'host = "[fd', ("IPv4 only here",)),
    (SWITCH, 'host = "10.0.0.1"', 'host = "::"', 'host = "::"', ("unspecified", "IPv4 only here")),
    (SWITCH, 'host = "10.0.0.1"', 'host = ""', 'host = ""', ("`nodes[0].host` is empty",)),
    (SWITCH, 'host = "10.0.0.1"', 'host = "12"', 'host = "12"', ("digits only", "four numbers")),
    (SWITCH, 'host = "10.0.0.1"', 'host = "10.0.1"', 'host = "10.0.1"', ("whole IPv4",)),
    (SWITCH, 'host = "10.0.0.1"', 'host = "a:5000"', 'host = "a:', ("port", 'host = "a"')),
    (SWITCH, 'host = "10.0.0.1"', 'host = "bob@a"', 'host = "bob', ("bob@a", "`user`")),
    (SWITCH, 'host = "10.0.0.1"', 'host = "-oProxy"', 'host = "-o', ("cannot begin with `-`",)),
    (SWITCH, 'host = "10.0.0.1"', "host = 12", "host = 12", ("is 12", "IPv4")),
    (SWITCH, 'host = "10.0.0.2"', 'host = "10.0.0.1"', 'host = "10.0.0.1"\n\n# A', ("twice",)),
    (SWITCH, 'host = "10.0.0.1"', "", "[[nodes]]", ("without `host`", "add host")),
    (SWITCH, 'user = "bob"', 'user = "-bob"', 'user = "-bob', ("login name",)),
    (SWITCH, 'nfs_server = "10.0.22.1"\n', "", "[weights]", ("without `nfs_server`",)),
    (SWITCH, '"10.0.22.0/24"', '"10.0.22.1/24"', "nfs_clients", ("host bits",)),
    (SWITCH, "[fabric.nccl]", "[fabric.ring]\n[fabric.nccl]", "[fabric.ring]", ("topology`",)),
    (SWITCH, '"rocep1s0f0"', '"=rocep1s0f0:1"', "devices = [\"=", ('devices = ["rocep1s0f0"]',)),
    (SWITCH, '["rocep1s0f0", "roceP2p1s0f0"]', '"a,b"', 'devices = "a', ('devices = ["a", "b"]',)),
    (SWITCH, 'tag = "tetraspark:four-sparks"', 'tag = "t:x@sha256:00"', "tag", ('tag = "t:x"',)),
    (SWITCH, 'recipe = "release"', 'recipe = "release"\nbase = "a:b"', "base", ("digest",)),
    (SWITCH, 'recipe = "release"', 'recipe = "canary"', "recipe", ("SGLANG_RUST_BUILD_MODE",)),
    (SWITCH, 'recipe = "release"', 'recipe = "relese"', "recipe", ('did you mean "release"',)),
    (SWITCH, 'recipe = "release"', 'recipe="release"\ndockerfile="D"\n'
     'build_args={A_TOKEN="hidden1"}', "build", ("`A_TOKEN`", "history")),
    (SWITCH, 'recipe = "release"', 'recipe="release"\ndockerfile="D"\n'
     'build_args={SSH_KEYS="hidden1"}', "build", ("`SSH_KEYS`", "history")),
    (SWITCH, 'recipe = "release"', 'recipe="release"\ndockerfile="D"\n'
     'build_args={"A-B"="1"}', "build", ("'A-B'", "letters")),
    (SWITCH, 'recipe = "release"', 'recipe="release"\ndockerfile="D"\n'
     'build_args={BASE_IMAGE="x"}', "build", ("`image.base`",)),
    (SWITCH, 'recipe = "release"', 'recipe="release"\nbuild_args={A="1"}', "build",
     ("`image.dockerfile` is not", "takes no arguments")),
    (SWITCH, 'recipe = "release"', 'recipe="release"\npip_index="https://a.example/simple"', "pip",
     ("`image.dockerfile` is not",)),
    (SWITCH, 'recipe = "release"', 'recipe="release"\ndockerfile="D"\n'
     'pip_index="https://bob:hidden1@a.example"', "pip", ("a credential in `image.pip_index`",)),
    (SWITCH, 'recipe = "release"', 'recipe="release"\ndockerfile="D"\npip_index="pypi.org"',
     "pip_index", ("https://HOST/simple",)),
    (SWITCH, 'recipe = "release"', 'recipe = "base"', "recipe", ("SGLANG_RUST_BUILD_MODE",)),
    (SWITCH, "dist_port = 20000", "dist_port = 8888", "dist_port", ("also api.port", "two ports")),
    (SWITCH, "[env]", "[env]\nNCCL_BUFFSIZE = '1'", "NCCL_BUFF", ("`fabric.nccl.buffer_bytes`",)),
    (SWITCH, "[env]", "[env]\nNCCL_IB_GID_INDEX = '3'", "NCCL_IB_G", ("tetraspark's own",)),
    (RING, "channels_max = 4", "channels_max = 2", "channels_min", ("channels_max = 2",)),
    (RING, "[fabric.ring]", "[fabric.ring]\nnccl_patch='dual-pci'", "nccl_patch",
     ("`nccl_library_dir`",)),
    (RING, 'version = "2.30.7"', 'version = "2.30"', 'version = "2.30"', ("fabric.nccl.version",)),
    (RING, "[fabric.nccl]", "[fabric.nccl]\nchannels_max=4", "channels_max=4",
     ("[fabric.ring]",)),
    (RING, '= "never"', '= "auto"', "recipe", ("SGLANG_RUST_BUILD_MODE", '"never"')),
    (RING, "[ssh]", "[ssh]\nport = 22", "port = 22", ("unknown key `ssh.port`", "~/.ssh/config")),
    (SWITCH, '"~/.ssh/id_ed25519"', '"~/.ssh/%r"', "identity_file", ("%r", "whole path")),
    (SWITCH, '"DSPARK"', '"dspark"', "algorithm", ("upper case", 'algorithm = "DSPARK"')),
    (SWITCH, '"DSPARK"', '"EAGLE"\nsampled_in_graph = false', "sampled_in", ("= false", "EAG")),
    (SWITCH, "[env]", "[env]\nPATH = '/x'", "PATH", ("image's own", "`dockerfile`")),
    (SWITCH, "[env]", "[env]\nLD_PRELOAD = '/x'", "LD_PRELOAD", ("image's own",)),
    (SWITCH, "[api]", "[engram]\nio_threads = 9\n[api]", "[engram]",
     ('recipe "release"', "does not read", "dsv4.1 branch", "remove [engram]")),
    (SWITCH, "[guards]", "[guards]\nprefill_empty_cache_tokens = 0", "prefill_empty",
     ("sglang 0.5.23 does not read it", "docs/guards.md", "remove it")),
    (RING, "[guards]", "[guards]\nmax_sequences = 2", "max_sequences",
     ("the dsv4.1 branch does not read it", "docs/guards.md")),
    (SWITCH, "[guards]", "[guards]\nloop_ngram = 1", "loop_ngram", ("2 to 1024 tokens",)),
    (SWITCH, "[guards]", "[guards]\nloop_repeats = 600", "loop_repeats",
     ("loop_ngram = 32 times loop_repeats = 600", "at most 16384")),
    (SWITCH, "[guards]", "[guards]\ndefault_new_tokens = 40000", "default_new",
     ("default_new_tokens = 40000 with max_new_tokens = 32768", "at most max_new_tokens")),
    (SWITCH, "[guards]", "[guards]\nreasoning_efforts = ['turbo']", "reasoning_efforts",
     ("'turbo'",)),
]  # fmt: skip


@pytest.mark.parametrize(("base", "old", "new", "at", "words"), CASES)
def test_one_fault_is_one_problem_at_its_line(
    tmp_path: Path, base: str, old: str, new: str, at: str, words: tuple[str, ...]
) -> None:
    text = changed(base, old, new)
    where = text.rindex(at) if at.startswith("name = ") else text.index(at)
    found = problems(tmp_path, text)
    assert len(found) == 1, [str(problem) for problem in found]
    assert found[0].where.endswith(f"site.toml:{text[:where].count(chr(10)) + 1}"), str(found[0])
    for word in words:
        assert word in str(found[0])
    assert "hidden1" not in str(found[0])


def test_all_problems_come_at_once_in_file_order(tmp_path: Path) -> None:
    text = changed(LOCAL, "tp = 4", 'tp = 3\nfoo = 1\nextra_args = ["--port=1"]')
    text = changed(text, 'kind = "local"', 'kind = "local"\n[weights]\nmode = "local"')
    text = changed(text, "port = 30000", 'port = "x"')
    found = problems(tmp_path, text)
    lines = [int(problem.where.rsplit(":", 1)[1]) for problem in found]
    assert len(found) == 5 and lines == sorted(lines)


def test_keys_of_another_weights_mode_are_errors(tmp_path: Path) -> None:
    text = changed(SWITCH, 'mode = "nfs"', 'mode = "local"')
    found = problems(tmp_path, text)
    wanted = '`nfs_server` is set but `weights.mode` is "local"'
    assert found[0].seen == wanted
    assert [problem.where.rsplit(":", 1)[1] for problem in found] == [
        str(line_of(text, key)) for key in ("nfs_server", "nfs_export", "nfs_clients")
    ]
    assert {problem.fix for problem in found} == {'remove it or set mode = "nfs"'}


def test_a_missing_section_is_named(tmp_path: Path) -> None:
    text = SWITCH.replace("[weights]", "[weightz]")
    seen = " ".join(str(problem) for problem in problems(tmp_path, text))
    assert "[weights] is missing" in seen and "did you mean `weights`?" in seen


def test_every_fault_of_the_build_arguments_comes_at_once(tmp_path: Path) -> None:
    args = '{ A = 1, B_TOKEN = "hidden1", "C-D" = "1", BASE_IMAGE = "x", E = "https://hidden1@h" }'
    image = f'recipe = "release"\ndockerfile = "D"\nbuild_args = {args}'
    found = problems(tmp_path, changed(SWITCH, 'recipe = "release"', image))
    assert len(found) == 5 and "hidden1" not in str(found)
    for name in ("build_args.A`", "`B_TOKEN`", "'C-D'", "`BASE_IMAGE`", "build_args.E`"):
        assert any(name in problem.seen for problem in found)


def test_a_dockerfile_that_is_not_there_is_told_at_its_line(tmp_path: Path) -> None:
    text = changed(SWITCH, 'recipe = "release"', 'recipe = "release"\ndockerfile = "D"')
    (problem,) = problems(tmp_path, text)
    assert problem.seen == "no such file" and f"{tmp_path}/D" in problem.wanted
    assert problem.where.endswith(f":{line_of(text, 'dockerfile')}")
    (tmp_path / "D").write_text("FROM scratch\n")
    image = load(tmp_path, text).site.image
    assert image is not None and image.dockerfile == "D"


@pytest.mark.parametrize("name", ["local", "four-sparks-switch", "four-sparks-ring"])
def test_the_example_sites_load(name: str) -> None:
    loaded = load_site(SITES / f"{name}.toml")
    assert loaded.site.name == name
    assert loaded.site.engine.tp == len(loaded.site.nodes) == 4
    assert loaded.warnings == ()


def test_the_local_site_is_what_serve_needs() -> None:
    site = load_site(SITES / "local.toml").site
    assert [node.name for node in site.nodes] == ["node0", "node1", "node2", "node3"]
    assert (site.model.path, site.model.served_name) == ("../models/tiny", "tiny")
    engine = site.engine
    assert (engine.context_length, engine.max_running_requests) == (4096, 8)
    assert (engine.kv_tokens, engine.mem_fraction, engine.ep) == (8192, 0.5, 1)
    assert (site.api.host, site.api.port) == ("127.0.0.1", 30000)
    assert (site.model.canary.prompt, site.model.canary.expect) == ("What is 19 + 23?", "42")
    times = site.deadlines
    assert (times.import_seconds, times.load_seconds, times.warmup_seconds) == (300, 300, 300)
    assert (times.canary_seconds, times.stop_seconds) == (60, 20)


def test_a_fleet_has_longer_deadlines_and_keeps_its_own(tmp_path: Path) -> None:
    times = load(tmp_path, SWITCH + "[deadlines]\nload_seconds = 7\n").site.deadlines
    assert (times.load_seconds, times.warmup_seconds) == (7, 1800)


def test_every_value_knows_where_it_came_from(tmp_path: Path) -> None:
    loaded = load(tmp_path, LOCAL)
    tp = loaded.origin("engine.tp")
    assert (tp.kind, tp.where) == ("file", f"{tmp_path}/site.toml:{line_of(LOCAL, 'tp = 4')}")
    assert loaded.origin("nodes[3].name").where.endswith(f":{line_of(LOCAL, 'node3')}")
    assert (loaded.origin("engine.ep").kind, loaded.origin("engine.ep").where) == ("default",) * 2


def test_bytes_are_hashed_as_read_and_oddities_warned_of_once(tmp_path: Path) -> None:
    data = b"\xef\xbb\xbf" + LOCAL.rstrip("\n").replace("\n", "\r\n").encode()
    loaded = load(tmp_path, data)
    assert loaded.site == load(tmp_path, LOCAL).site
    assert loaded.sha256 == hashlib.sha256(data).hexdigest()
    assert [w.seen.split()[0] for w in loaded.warnings] == ["a", "CRLF"]
    assert "BOM" in loaded.warnings[0].seen


def test_the_last_line_counts_without_a_newline(tmp_path: Path) -> None:
    assert load(tmp_path, LOCAL.rstrip("\n")).site.api.port == 30000


@pytest.mark.parametrize(
    ("data", "where", "words"),
    [
        (b"name = 'a'\nkind = '\xff'\n", ":2", "0xff"),
        (b"name = 'a'\n\nk\0 = 1\n", ":3", "NUL"),
        (b"name = 'a'\nkind = 'local'\rtp = 4\n", ":2", "carriage return"),
        ("name = 'a'\n".encode("utf-16"), ":1", "UTF-16"),
        (b"name = 'a'\ntp 4\n", ":2:4", "tp 4"),
        (b"name = 'a'\nkind = local\n", ":2:8", "double quotes"),
        (b"name = 'a'\nkind = 'local'\nname = 'b'\n", ":3:11", "line 1"),
        (b"[engine]\ntp = 4\n[engine]\n", ":3:8", "line 1"),
        (b"TP_SIZE=4 # x\nexport A=b\n", ":2:8", "import-env"),
        (b"name = [1,\n", ":1:11", "name = [1,"),
        (b"API_KEY = hidden1\n", ":1:11", "API_KEY"),
        (b"a = " + b"[" * 5000 + b"]" * 5000, "", "nested too deep"),
        (b"a = " + b"9" * 5000, ":1:1", "9999"),
    ],
)
def test_bytes_and_syntax_that_cannot_be_read(
    tmp_path: Path, data: bytes, where: str, words: str
) -> None:
    (problem,) = problems(tmp_path, data)
    assert problem.where == f"{tmp_path}/site.toml{where}"
    assert words in str(problem) and "hidden1" not in str(problem)


def test_a_missing_file_a_folder_and_an_unreadable_file(tmp_path: Path) -> None:
    locked = tmp_path / "locked.toml"
    locked.write_text(LOCAL)
    locked.chmod(0)
    wanted = {tmp_path / "none.toml": "no such file", tmp_path: "a folder"}
    if os.geteuid() != 0:
        wanted[locked] = "permission denied"
    for path, seen in wanted.items():
        with pytest.raises(UsageError, match=seen) as caught:
            load_site(path)
        assert caught.value.problems[0].fix
        if seen == "no such file":
            assert "--site FILE" in caught.value.problems[0].fix
            assert "sites/ of the repository" in caught.value.problems[0].fix


def test_values_copied_from_a_shell_file_are_warned_of(tmp_path: Path) -> None:
    text = LOCAL + "\n[env]\nA = '\"x\"'\nB = 'y # z'\nC = 'fine#'\n"
    warnings = load(tmp_path, text).warnings
    assert [w.where.rsplit(":", 1)[1] for w in warnings] == [
        str(line_of(text, "A = ")),
        str(line_of(text, "B = ")),
    ]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("kv_tokens = 8192", "kv_tokens = 100", "less than one request"),
    ],
)
def test_likely_mistakes_are_warned_of(tmp_path: Path, old: str, new: str, words: str) -> None:
    (warning,) = load(tmp_path, changed(LOCAL, old, new)).warnings
    assert words in warning.seen


def test_a_host_name_and_one_loopback_node_are_fine(tmp_path: Path) -> None:
    text = changed(SWITCH, 'host = "10.0.0.1"', 'host = "spark-1.lan"')
    assert load(tmp_path, text).site.nodes[0].host == "spark-1.lan"
    head, rest = RING.split("[[nodes]]", 1)[0], RING.split("[model]", 1)[1]
    one = f'{head}[[nodes]]\nname = "a"\nhost = "127.0.0.1"\n[model]{rest}'
    one = one.replace("tp = 4", "tp = 1").replace("ep = 4", "ep = 1")
    assert load(tmp_path, one).site.nodes[0].host == "127.0.0.1"


def test_a_site_built_in_python_is_cross_checked_too() -> None:
    document: dict[str, Any] = load_site(SITES / "local.toml").site.model_dump(exclude_unset=True)
    assert Site.model_validate(document).engine.tp == 4
    document["engine"]["tp"] = 3
    with pytest.raises(ValidationError, match="tp = 3"):
        Site.model_validate(document)
