"""Scenario packs: YAML files, one pack each, named like their pack; and the rules for scripts."""
