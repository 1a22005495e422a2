"""Cases of a fleet's line that need no nodes: what is refused before anything is reached."""

import os
import subprocess
from pathlib import Path

import pytest

from tests.serving import COMMAND, ROOT
from tetraspark.fleet.login import Login
from tetraspark.fleet.ssh_failure import ssh_problem

SITE = (ROOT / "sites" / "four-sparks-ring.toml").read_text()
REFUSED = {
    "bob@10.0.0.2: Permission denied (publickey,password).": "permission denied",
    "ssh: connect to host 10.0.0.2 port 22: Connection timed out": "timed out",
    "Host key verification failed.": "host key unknown",
    "ssh: Could not resolve hostname spark2: Name or service not known": "unknown host",
}


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "169.254.3.4", "localhost"])
def test_L10_a_head_that_others_cannot_reach_is_refused_before_any_ssh(
    tmp_path: Path, host: str
) -> None:
    site = tmp_path / "site.toml"
    site.write_text(SITE.replace('host = "192.168.1.11"', f'host = "{host}"'))
    ssh = tmp_path / "bin" / "ssh"
    ssh.parent.mkdir()
    ssh.write_text(f"#!/bin/sh\ntouch {tmp_path}/reached\nexit 255\n")
    ssh.chmod(0o755)
    own = {"PATH": f"{ssh.parent}:{os.environ['PATH']}", "TETRASPARK_STATE": str(tmp_path)}
    done = subprocess.run(
        [str(COMMAND), "serve", "--site", str(site)],
        env=os.environ | own,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert f"{site}:8" in done.stderr
    assert not (tmp_path / "reached").exists()


@pytest.mark.parametrize(("stderr", "name"), REFUSED.items())
def test_L15_each_way_that_ssh_fails_has_its_name_and_the_command_to_try(
    stderr: str, name: str
) -> None:
    problem = ssh_problem(Login("spark2", "10.0.0.2", "bob"), "login", stderr, opened=False)
    assert problem.seen == f"ssh failed: {name}, during login: {stderr}"
    assert problem.where == "spark2 (ssh bob@10.0.0.2)"
    assert "10.0.0.2" in problem.fix
