"""A configuration's mistakes are reported all at once, each with its place and a sentence."""

import sys

import pytest

from socratic_bench.errors import InvalidConfig
from tests.unit.planning.catalogue import config_of, mistakes_of

MODELS = "models: [reference/socratic]\n"

IN_MODELS = [
    (
        "models:\n- reference/socratic\n- bedrock/x\nbudget: 1.5",
        (
            "line 4, budget: a budget needs the price of every model, 0 for one that costs "
            "nothing; bedrock/x has none"
        ),
    ),
    (
        "models:\n- gpt-4",
        'line 2, models[0]: must be `provider/name`, such as `reference/socratic`, not "gpt-4"',
    ),
    ("models:\n- openai/gpt-4", "line 2, models[0]: there is no provider openai"),
    ("models:\n- id: openai/gpt-4", "line 2, models[0].id: there is no provider openai"),
    ("models:\n- 3", "line 2, models[0]: must be `provider/name` or a mapping with `id`, not 3"),
    ("models:\n- name: x", "line 2, models[0].id: is missing"),
    (
        "models:\n- 'reference/x '",
        (
            "line 2, models[0]: must be `provider/name`, such as "
            '`reference/socratic`, not "reference/x "'
        ),
    ),
    (
        "models:\n- {id: reference/x, name: 3.5}",
        "line 2, models[0].name: must be text, not 3.5: put it in quotes",
    ),
    (
        "models:\n- {id: reference/x, name: true}",
        "line 2, models[0].name: must be text, not true: put it in quotes",
    ),
    ("models:\n- {id: reference/x, name: }", "line 2, models[0].name: must be text, not empty"),
    (
        "models:\n- {id: reference/x, api_key: secret}",
        (
            "line 2, models[0].api_key: a secret is never written here: remove it, and put it into "
            "the environment"
        ),
    ),
    (
        "models:\n- {id: reference/x, colour: red}",
        (
            "line 2, models[0].colour: unknown field; there are `id`, `name`, `options`, "
            "`base_url`, `endpoint`, `system_prompt`, `parameters`, `price`, `context_tokens`, "
            "`limits`"
        ),
    ),
    (
        "models:\n- {id: reference/x, context_tokens: 500}",
        (
            "line 1, models: model reference/x: its context_tokens of 500 leave no room besides "
            "max_tokens of 600"
        ),
    ),
    (
        "models:\n- id: reference/x\n  limit: {concurrency: 1}",
        "line 3, models[0].limit: unknown field; did you mean `limits`?",
    ),
    (
        "models:\n- id: reference/x\n  limits:\n    concurency: 1",
        "line 4, models[0].limits.concurency: unknown field; did you mean `concurrency`?",
    ),
    (
        "models:\n- id: reference/x\n  limits:\n    concurrency: 2.5",
        "line 4, models[0].limits.concurrency: must be a whole number, not 2.5",
    ),
    (
        "models:\n- id: reference/x\n  limits: {timeout_seconds: 0}",
        "line 3, models[0].limits.timeout_seconds: must be more than 0, not 0",
    ),
    (
        "models:\n- id: reference/x\n  options: [1]",
        "line 3, models[0].options: must be a mapping, not a list",
    ),
    (
        (
            "models:\n- reference/x\n- id: reference/x\n  price:\n    input_per_million: -3\n"
            "    output_per_million: 1\n"
        ),
        "line 5, models[1].price.input_per_million: must be 0 or more, not -3",
    ),
    (
        "models:\n- id: reference/x\n  price: {input_per_million: 1}",
        "line 3, models[0].price.output_per_million: is missing",
    ),
    (
        "models:\n- id: reference/x\n  price: {input_per_million: cheap, output_per_million: 2e6}",
        'line 3, models[0].price.input_per_million: must be a number, not "cheap"',
        "line 3, models[0].price.output_per_million: must be 1000000 or less, not 2000000.0",
    ),
    (
        "models:\n- reference/x\n- id: reference/x",
        'line 3, models[1].id: model "reference/x" is listed more than once',
    ),
    ("models:\n- replay/a.jsonl", "line 2, models[0]: a recording needs a folder"),
    ("models: []", "line 1, models: must name at least one model"),
    ("models: reference/x", 'line 1, models: must be a list of models, not "reference/x"'),
    ("repeats: 3", "line 1, models: is missing"),
]

BESIDE_MODELS = [
    ("repeat: 3", "line 2, repeat: unknown field; did you mean `repeats`?"),
    (
        "colour: red",
        (
            "line 2, colour: unknown field; there are `models`, `scenarios`, "
            "`system_prompt`, `parameters`, `repeats`, `stop_when`, `profile`, "
            "`use_llm_exploratory`, `student`, `deadline_hours`, `priority`, `budget`, "
            "`name`, `notes`, `prompts`, `occasion`, `length`, `weights`"
        ),
    ),
    (
        "judge: 1",
        (
            "line 2, judge: unknown field; there are `models`, `scenarios`, "
            "`system_prompt`, `parameters`, `repeats`, `stop_when`, `profile`, "
            "`use_llm_exploratory`, `student`, `deadline_hours`, `priority`, `budget`, "
            "`name`, `notes`, `prompts`, `occasion`, `length`, `weights`"
        ),
    ),
    ("name: ' x'", 'line 2, name: must be one line without spaces at its ends, not " x"'),
    (f"notes: {'x' * 2001}", "line 2, notes: must have at most 2,000 characters, not 2,001"),
    ("repeats: three", 'line 2, repeats: must be a whole number, not "three"'),
    ("repeats: '3'", 'line 2, repeats: must be a whole number, not "3"'),
    (
        "repeats: 2\nscenarios: [ambiguous-more-depth]\nstop_when: {interval: 0.05}",
        (
            "line 4, stop_when: an interval needs 5 scenarios, not 1: add some, or leave stop_when "
            "out (--set stop_when=null)"
        ),
        (
            "line 4, stop_when: the first look comes after 2 repeats: raise `repeats`, the most "
            "that may be bought"
        ),
    ),
    ("repeats: 0", "line 2, repeats: must be 1 or more, not 0"),
    ("repeats: 1000000", "line 2, repeats: must be 100000 or less, not 1000000"),
    ("deadline_hours: 0", "line 2, deadline_hours: must be more than 0, not 0"),
    ("deadline_hours: 744.5", "line 2, deadline_hours: must be 744 or less, not 744.5"),
    ("deadline_hours: '9'", 'line 2, deadline_hours: must be a number, not "9"'),
    ("deadline: 9", "line 2, deadline: unknown field; did you mean `deadline_hours`?"),
    ("repeats:", "line 2, repeats: must be a whole number, not empty"),
    ("repeats: true", "line 2, repeats: must be a whole number, not true"),
    (
        f"repeats: {'9' * 41}",
        "line 2, repeats: is a number of 41 digits, which is too many",
        "line 2, repeats: must be 1 or more, not 0",
    ),
    ("parameters: {temperature: 3}", "line 2, parameters.temperature: must be 2 or less, not 3"),
    (
        "parameters:\n  temprature: 1",
        "line 3, parameters.temprature: unknown field; did you mean `temperature`?",
    ),
    ("parameters: fast", 'line 2, parameters: must be a mapping, not "fast"'),
    ("system_prompt: [x]", "line 2, system_prompt: must be text, not a list"),
    ("occasion: 2026", "line 2, occasion: must be text, not 2026: put it in quotes"),
    ("occasion: ' x'", 'line 2, occasion: must be one line without spaces at its ends, not " x"'),
    (
        "profile: socratic-9",
        (
            "line 2, profile: unknown scorer profile 'socratic-9'; known: socratic-v1, "
            "socratic-v2, socratic-v3, fidelity-1, fidelity-seed"
        ),
    ),
    ("budget: {usd: 1.00}", "line 2, budget: must be a number, not a mapping"),
    ("budget: -1", "line 2, budget: must be 0 or more, not -1"),
    (
        '"a\\nb": 1',
        (
            'line 2, ["a\\nb"]: unknown field; there are `models`, `scenarios`, '
            "`system_prompt`, `parameters`, `repeats`, `stop_when`, `profile`, "
            "`use_llm_exploratory`, `student`, `deadline_hours`, `priority`, `budget`, "
            "`name`, `notes`, `prompts`, `occasion`, `length`, `weights`"
        ),
    ),
]

IN_SCENARIOS = [
    (
        "scenarios: 3",
        (
            "line 2, scenarios: must be the name of a pack, a list of scenarios, the "
            "path of a scenario file, or a mapping with `file` or `dataset`, not 3"
        ),
    ),
    ("scenarios: []", "line 2, scenarios: must name at least one scenario"),
    (
        "scenarios: socratic-16",
        (
            'line 2, scenarios: "socratic-16" is neither a scenario pack (there are '
            "hollow-3, pressure-24, pressure-48, socratic-15) nor the path of a file that ends in "
            ".yaml, .yml, .json, .jsonl, .csv, .tsv, .parquet"
        ),
    ),
    (
        "scenarios: mine.jsonl",
        "line 2, scenarios: a file cannot be read from here: write the scenarios out in its place",
    ),
    (
        "scenarios:\n- student-empty-line",
        (
            'line 3, scenarios[0]: "student-empty-line" is neither a pack nor a scenario '
            'of socratic-15; did you mean "student-empty-lines"?'
        ),
    ),
    (
        "scenarios:\n- hollow-4",
        (
            'line 3, scenarios[0]: "hollow-4" is neither a pack nor a scenario '
            'of socratic-15; did you mean "hollow-3"?'
        ),
    ),
    (
        "scenarios:\n- student-empty-lines\n- student-empty-lines",
        'line 4, scenarios[1]: scenario "student-empty-lines" is listed more than once',
    ),
    (
        "scenarios:\n- [x]",
        (
            "line 3, scenarios[0]: must be a pack, the id of a scenario of socratic-15, or a "
            "mapping with `id`, `dimension` and `prompt`, not a list"
        ),
    ),
    (
        "scenarios:\n- id: mine\n  dimension: student",
        "line 3, scenarios[0].prompt: is missing, and its id is not in socratic-15",
    ),
    ("scenarios:\n- id: mine\n  prompt: Why?", "line 3, scenarios[0].dimension: is missing"),
    ("scenarios:\n- dimension: student\n  prompt: Why?", "line 3, scenarios[0].id: is missing"),
    (
        "scenarios:\n- id: mine\n  dimension: student\n  prompt: ''",
        "line 5, scenarios[0].prompt: must not be empty",
    ),
    (
        "scenarios:\n- id: mine\n  dimension: student\n  prompt: Why?\n  follow_ups:\n  - 3",
        "line 7, scenarios[0].follow_ups[0]: must be text, not 3: put it in quotes",
    ),
    (
        f"scenarios:\n- id: {'x' * 201}\n  dimension: student\n  prompt: Why?",
        "line 3, scenarios[0].id: must have at most 200 characters, not 201",
    ),
    (
        'scenarios:\n- {id: a, dimension: b, prompt: "\\0"}',
        "line 3, scenarios[0].prompt: must not contain the character U+0000",
    ),
]

IN_YAML = [
    ("", "benchmark.yaml: is empty"),
    ("# nothing yet\n", "benchmark.yaml line 1: is empty"),
    ("- x", "benchmark.yaml line 1: must be a mapping with `models`, not a list"),
    (
        "---\n" + MODELS + "---\nx: 1",
        "benchmark.yaml line 3: a second document begins: one is allowed",
    ),
    (
        MODELS + "repeats: 3\nmodels: [reference/hedger]",
        "benchmark.yaml line 3, models: is given twice: the first is in line 1",
    ),
    (
        MODELS + "occasion: !!python/object:os.system x",
        (
            'benchmark.yaml line 2, occasion: the tag "!!python/object:os.system" is not '
            "supported: remove it"
        ),
    ),
    (
        MODELS + "<<: {repeats: 2}",
        'benchmark.yaml line 2, ["<<"]: merge keys are not supported: write the fields out',
    ),
    (
        "models: &m [*m]",
        "benchmark.yaml line 1, models[0]: refers to `&m`, but no earlier value has this anchor",
    ),
    (
        MODELS + "parameters: {temperature: 1e999}",
        'benchmark.yaml line 2, parameters.temperature: is too large a number: "1e999"',
    ),
    (
        MODELS + "occasion: a\x07",
        "benchmark.yaml line 2: not valid YAML: it contains the character U+0007",
    ),
]

IN_JSON = [
    (
        '{"models": ["reference/x",]}',
        "line 1, column 26: not valid JSON: illegal trailing comma before end of array"
        if sys.version_info >= (3, 13)
        else 'line 1, column 27: not valid JSON: expected value, not "]"',
    ),
    (
        '{"models":\n ["reference/x"}',
        '''line 2, column 16: not valid JSON: expected ',' delimiter, not "}"''',
    ),
    (
        '{"models": ["reference/x"]',
        "line 1, column 27: not valid JSON: expected ',' delimiter, not the end of the file",
    ),
    (
        '{"models": ["reference/x"]}\n}',
        "line 2, column 1: not valid JSON: extra data",
    ),
    (
        "{models: 1}",
        (
            "line 1, column 2: not valid JSON: expected property name enclosed in double quotes, "
            'not "m"'
        ),
    ),
    ('{"models" 1}', '''line 1, column 11: not valid JSON: expected ':' delimiter, not "1"'''),
    ('{"models": NaN}', "line 1, models: not valid JSON: NaN is not allowed"),
    ('{"models": "x\ny"}', "line 1, column 14: not valid JSON: invalid control character"),
    ('{"models": "x', "line 1, column 12: not valid JSON: unterminated string starting"),
    ('{"models": ["reference/x"],\n\n "repeats": 0}', "line 3, repeats: must be 1 or more, not 0"),
    (
        '{"models": ["reference/x"],\n "models": []}',
        "line 2, models: is given twice: the first is in line 1",
    ),
    (
        '{"models": ["reference/x"],\n "occasion": "\\ud800"}',
        "line 2, occasion: must not contain the character U+D800",
    ),
    (
        '{"models": ["reference/x"], "parameters": {"temperature": 1e999}}',
        'line 1, parameters.temperature: is too large a number: "1e999"',
    ),
]


ONE_BY_ONE = [
    *IN_MODELS,
    *((MODELS + text, *sentences) for text, *sentences in BESIDE_MODELS + IN_SCENARIOS),
]


@pytest.mark.parametrize("case", ONE_BY_ONE, ids=lambda case: case[1])
def test_a_mistake_is_told_at_its_place_in_a_sentence(case):
    text, *sentences = case
    assert mistakes_of(text) == [f"benchmark.yaml {sentence}" for sentence in sentences]


@pytest.mark.parametrize("case", IN_YAML, ids=lambda case: case[1])
def test_text_that_is_not_one_plain_yaml_mapping_is_refused(case):
    text, *sentences = case
    assert mistakes_of(text) == sentences


@pytest.mark.parametrize(
    ("text", "place"),
    [
        (MODELS + "parameters: {a: 1", "benchmark.yaml line 2, column 18"),
        (MODELS + "repeats:\n\t- 1", "benchmark.yaml line 3, column 1"),
        ("models: [a]]", "benchmark.yaml line 1, column 12"),
    ],
)
def test_a_syntax_error_of_yaml_names_line_and_column(text, place):
    (mistake,) = mistakes_of(text)
    assert mistake.startswith(f"{place}: not valid YAML: ")


@pytest.mark.parametrize(("text", "sentence"), IN_JSON, ids=lambda part: part[:40])
def test_a_mistake_in_json_names_its_line_too(text, sentence):
    assert mistakes_of(text, "benchmark.json") == [f"benchmark.json {sentence}"]


def test_all_mistakes_are_told_at_once_in_the_order_of_the_lines():
    text = """\
repeats: many
models:
- gpt-4
- id: reference/x
  price: {input_per_million: -1, output_per_million: -1}
scenarios: [nobody]
parameters: {top_p: 0}
budget: cheap
"""
    with pytest.raises(InvalidConfig) as caught:
        config_of(text)
    assert [mistake.place for mistake in caught.value.mistakes] == [
        "benchmark.yaml line 1, repeats",
        "benchmark.yaml line 3, models[0]",
        "benchmark.yaml line 5, models[1].price.input_per_million",
        "benchmark.yaml line 5, models[1].price.output_per_million",
        "benchmark.yaml line 6, scenarios[0]",
        "benchmark.yaml line 7, parameters.top_p",
        "benchmark.yaml line 8, budget",
    ]


def test_equal_mistakes_of_many_entries_are_one_sentence_with_a_guess_and_each_of_them_is_kept():
    rows = "\n".join(f"- {{id: s{n}, dimension: d, question: P{n}?}}" for n in range(20))
    text = f"models: [reference/x]\nrepeats: 0\nscenarios:\n{rows}\n- {{id: a}}\n- {{id: b}}"
    with pytest.raises(InvalidConfig) as caught:
        config_of(text)
    missing = "is missing, and its id is not in socratic-15"
    told = (
        "line 2, repeats: must be 1 or more, not 0",
        f"lines 4 to 25, scenarios[*].prompt: {missing} (22 times)",
        "lines 4 to 23, scenarios[*].question: unknown field; did you mean `prompt`? (20 times)",
    )
    assert str(caught.value).splitlines() == [f"benchmark.yaml {each}" for each in told]
    assert len(caught.value.mistakes) == 43


def test_a_mistake_in_what_an_alias_stands_for_is_told_where_it_is_written():
    text = """\
models:
- id: reference/a
  limits: &slow {concurrency: 0}
- id: reference/b
  limits: *slow
"""
    sentence = "benchmark.yaml line 3, models[0].limits.concurrency: must be 1 or more, not 0"
    assert mistakes_of(text) == [sentence, sentence]
