"""The commands. `COMMANDS` of `socratic_cli.cli` names the file of each one."""
