"""`--help` lists every command as the command describes itself, and imports none."""

import subprocess
import sys

import pytest
from click.shell_completion import ShellComplete

import socratic_bench
from socratic_cli.cli import COMMANDS, load_command
from socratic_cli.cli import socratic_bench as command


@pytest.mark.parametrize("name", COMMANDS)
def test_the_list_describes_a_command_as_it_describes_itself(name):
    _, summary = COMMANDS[name]
    assert summary == load_command(name).get_short_help_str(limit=100)


def test_help_imports_no_command_and_nothing_that_is_slow():
    program = (
        "import sys; sys.argv = ['socratic-bench', '--help']\n"
        "from socratic_cli.cli import main\n"
        "try:\n    main()\n"
        "finally:\n    print(*sorted(sys.modules), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    imported = set(done.stderr.split())
    assert not imported & {"pydantic", "structlog", "sqlalchemy", "aiohttp", "rich", "asyncio"}
    assert [line.split()[0] for line in done.stdout.splitlines()[9:]] == list(COMMANDS)


def test_the_library_gives_what_it_lists_and_nothing_else():
    assert {getattr(socratic_bench, name).__name__ for name in socratic_bench.__all__} == set(
        socratic_bench.__all__
    )
    with pytest.raises(AttributeError, match="'socratic_bench' has no attribute 'scores'"):
        _ = socratic_bench.scores


def test_a_shell_completes_commands_and_their_options():
    shell = ShellComplete(command, {}, "socratic-bench", "_SOCRATIC_BENCH_COMPLETE")
    assert [each.value for each in shell.get_completions([], "lead")] == ["leaderboard"]
    assert [each.value for each in shell.get_completions(["run"], "--sc")] == ["--scenario"]
