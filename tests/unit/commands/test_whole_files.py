"""The files that commands write: whole or not at all, and nothing but regular files is replaced."""

import os
import threading
from pathlib import Path

import pytest

from socratic_bench.errors import InvalidInput
from socratic_cli.options.results import whole_file


def write(path: Path, text: str) -> None:
    with whole_file(path) as file:
        file.write(text)


def test_a_link_is_followed_and_the_mode_of_its_target_stays(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    target.chmod(0o600)
    link.symlink_to(target)
    write(link, "new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert target.stat().st_mode & 0o777 == 0o600


def test_a_pipe_is_written_to_and_stays(tmp_path):
    pipe, read = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()), daemon=True)
    reader.start()
    write(pipe, "text")
    reader.join(30)
    assert read == ["text"]
    assert pipe.is_fifo()


def test_an_output_of_the_shell_gets_more_at_its_end(tmp_path):
    path = tmp_path / "out"
    with path.open("a") as shell:
        shell.write("first\n")
        shell.flush()
        write(Path(f"/dev/fd/{shell.fileno()}"), "second\n")
        shell.write("third\n")
    assert path.read_text() == "first\nsecond\nthird\n"


def test_other_files_of_the_folder_stay_as_they_are(tmp_path):
    other = tmp_path / "out.part"
    other.write_text("mine")
    write(tmp_path / "out", "new")
    assert other.read_text() == "mine"
    assert {each.name for each in tmp_path.iterdir()} == {"out", "out.part"}


def test_an_error_leaves_the_file_as_it_was_and_no_other(tmp_path):
    path = tmp_path / "out"
    path.write_text("old")

    def fail() -> None:
        with whole_file(path) as file:
            file.write("half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert path.read_text() == "old"
    assert [each.name for each in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("name", ["a" * 300, "no/such/folder"])
def test_a_file_that_cannot_be_written_is_an_error_of_one_sentence(tmp_path, name):
    with pytest.raises(InvalidInput, match=r"--out: .* cannot be written"):
        write(tmp_path / name, "text")
