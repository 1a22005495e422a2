"""Where a build is and what failed, from what both of Docker's builders print."""

from tetraspark.images.build_log import BuildLog, Step

# From `docker build` 20.10, without colours.
LEGACY = """\
Sending build context to Docker daemon  3.072kB

Step 1/3 : FROM base:1@sha256:0bfe AS one
 ---> 0ea9ddff57d5
Step 2/3 : RUN echo hello && echo err >&2
 ---> Running in f80320c3ab38
hello
err
Removing intermediate container f80320c3ab38
 ---> 8bd002f144c4
Step 3/3 : RUN echo word1; echo word2 >&2; exit 3
 ---> Running in c0cc3c58cb1b
word1
word2
The command '/bin/sh -c echo word1; echo word2 >&2; exit 3' returned a non-zero code: 3
"""
# From BuildKit's plain progress; two stages run side by side.
KIT = """\
#1 [internal] load build definition from Dockerfile
#1 sha256:eb2dd9c70208b9bc64c45baf117b887c93f88e07b8d05df60baea93edb5ea64e
#1 transferring dockerfile: 348B done
#1 DONE 0.1s

#4 [one 1/3] FROM docker.io/base:1@sha256:0bfe
#4 DONE 0.0s

#5 [one 2/3] RUN echo hello && echo err >&2
#5 0.206 hello
#8 [stage-1 3/3] RUN echo word1; echo word2 >&2; exit 3
#8 0.127 word2
#5 0.207 err
#8 0.130 word1
#8 ERROR: executor failed running [/bin/sh -c echo word1; exit 3]: exit code: 3
#5 0.300 more
#5 DONE 0.3s
------
 > [stage-1 3/3] RUN echo word1; echo word2 >&2; exit 3:
------
executor failed running [/bin/sh -c echo word1; exit 3]: exit code: 3
"""
WITHOUT_STAGES = "#5 [2/4] RUN true\n#6 [ 3/12] COPY a b\n"


def read(text: str) -> tuple[BuildLog, list[Step]]:
    log = BuildLog()
    steps = [step for step in map(log.feed, text.splitlines()) if step is not None]
    return log, steps


def test_the_legacy_builder() -> None:
    log, steps = read(LEGACY)
    assert [(step.number, step.total) for step in steps] == [(1, 3), (2, 3), (3, 3)]
    assert str(log.step) == "step 3/3: RUN echo word1; echo word2 >&2; exit 3"
    assert log.last_lines[:2] == ("word1", "word2")
    assert "non-zero code: 3" in log.last_lines[2]


def test_buildkit_where_the_step_that_failed_is_not_the_last_that_spoke() -> None:
    log, steps = read(KIT)
    assert [(step.number, step.total) for step in steps] == [(1, 3), (2, 3), (3, 3)]
    assert str(log.step) == "step 3/3: RUN echo word1; echo word2 >&2; exit 3"
    assert log.last_lines[:2] == ("word2", "word1")
    assert "exit code: 3" in log.last_lines[2]
    assert not any("more" in line for line in log.last_lines)


def test_steps_without_a_stage_name_and_padded_numbers() -> None:
    _, steps = read(WITHOUT_STAGES)
    assert steps == [Step(2, 4, "RUN true"), Step(3, 12, "COPY a b")]


def test_a_step_that_is_told_twice_begins_once() -> None:
    _, steps = read("#3 [1/2] FROM x\n#3 [1/2] FROM x\n")
    assert len(steps) == 1


def test_only_the_last_lines_are_kept() -> None:
    log, _ = read("Step 1/1 : RUN seq 100\n" + "\n".join(f"line {n}" for n in range(100)))
    assert log.last_lines[-1] == "line 99"
    assert len(log.last_lines) == 12


def test_before_the_first_step_there_is_none() -> None:
    log, steps = read("error checking context: no such file\n")
    assert (log.step, steps) == (None, [])
    assert log.last_lines == ("error checking context: no such file",)
