"""`socratic-bench init`: a configuration that runs as it is, and no file is lost."""

import pytest


@pytest.mark.parametrize(
    ("words", "name"), [((), "mine.yaml"), (("my file.yaml",), "my file.yaml")]
)
def test_it_writes_a_configuration_that_runs_and_names_the_command(prompt, words, name):
    done = prompt.run("init", *words)
    assert (done.code, done.out) == (0, "")
    quoted = f"'{name}'" if " " in name else name
    assert done.err == f"Wrote {name}. Next: socratic-bench run {quoted}\n"
    assert prompt.run("run", name, "--estimate").code == 0


def test_it_overwrites_nothing(prompt):
    mine = prompt.write("models: [reference/socratic]\n", "mine.yaml")
    done = prompt.run("init")
    assert done.code == 2
    assert done.err == (
        "Error: mine.yaml already exists and was not overwritten: name another file\n"
    )
    assert mine.read_text() == "models: [reference/socratic]\n"


def test_it_says_why_it_cannot_write(prompt):
    done = prompt.run("init", "nowhere/mine.yaml")
    assert done.code == 2
    assert done.err == "Error: nowhere/mine.yaml cannot be written: No such file or directory\n"
