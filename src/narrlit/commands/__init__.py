"""Commands of the command line: one line each.

The function that a line names is the declaration of its command: its parameters are the options, its docstring the help
(`narrlit.arguments`). Functions in this package are for commands that ask or print something that a result can't.
"""

from narrlit.declarations import Command, Opener
from narrlit.files import FRAME_SUFFIXES, PAGE_SUFFIXES, Output

POSTPROCESSING = ("fusion", "postprocess", "fit_on", "transductive")
READING = ("views", "missing_views", "pseudonyms", *POSTPROCESSING)
"""Options of a model that decide what it reads of a story."""
FITTED = Output(continued=True)
GENERATED = Output("{path}", "{path}.report.json", "{path}.answers.sqlite", continued=True)
JUDGED = Output(*GENERATED.names, "{path}.report.md", "{path}.rows.jsonl", continued=True)
PAIRS = Output("{path}", "{stem}-groups{suffix}", suffixes=(*FRAME_SUFFIXES, ".graphml"))
OPENING = "narrlit.commands.opening"
SYSTEMS = Opener(f"{OPENING}:systems")

TRAINING = {
    "fit": "Train an encoder: narrlit fit --config configs/quickstart.yaml",
    "validate": "Evaluate a checkpoint on the validation triples",
    "test": "Evaluate a checkpoint on the test triples",
    "predict": "Predict the answers to triples with a checkpoint",
}
"""Stages of Lightning, whose options are those of configs."""

COMMANDS = [
    Command("crossval", "Train", "narrlit.experiments.crossval:crossval", FITTED, without=("settings",)),
    Command("ablate", "Train", "narrlit.experiments.ablation:ablate", FITTED, without=("settings",)),
    Command("tune", "Train", "narrlit.experiments.tuning:tune", FITTED, without=("settings",)),
    Command("average", "Train", "narrlit.exporting.folders:average", FITTED),
    Command("cache", "Train", "narrlit.commands.cache:cache"),
    Command("evaluate", "Evaluate", "narrlit.commands.evaluate:evaluate"),
    Command(
        "compare",
        "Evaluate",
        "narrlit.experiments.evaluation:compare",
        Output.result("compare"),
        opens={"systems": SYSTEMS},
        without=("model",),
        json=True,
    ),
    Command(
        "fuse",
        "Evaluate",
        "narrlit.experiments.fusion:fuse",
        Output.result("fuse"),
        opens={"models": Opener(f"{OPENING}:encoders")},
        without=("model", *POSTPROCESSING),
        json=True,
    ),
    Command("retrieval", "Evaluate", "narrlit.commands.retrieval:retrieval"),
    Command(
        "profile",
        "Evaluate",
        "narrlit.experiments.profile:profile",
        Output.result("profile"),
        opens={"models": Opener(f"{OPENING}:profiled")},
        without=("model",),
        json=True,
    ),
    Command(
        "report",
        "Evaluate",
        "narrlit.experiments.system_report:report",
        Output(suffixes=PAGE_SUFFIXES, required=True),
        opens={"systems": Opener(f"{OPENING}:reported")},
        without=("model",),
    ),
    Command("reproduce", "Evaluate", "narrlit.commands.reproduce:reproduce"),
    Command("submit", "Evaluate", "narrlit.commands.submit:submit"),
    Command("embed", "Explore", "narrlit.commands.embed:embed"),
    Command("index", "Explore", "narrlit.commands.index:index"),
    Command(
        "search",
        "Explore",
        "narrlit.library.search:search",
        Output(suffixes=(*FRAME_SUFFIXES, ".html")),
        opens={"index": Opener(f"{OPENING}:searchable")},
        without=READING,
    ),
    Command("explain", "Explore", "narrlit.commands.explain:explain", without=READING[1:]),
    Command("map", "Explore", "narrlit.commands.map:map"),
    Command("pairs", "Explore", "narrlit.explore.pairs:pairs", PAIRS),
    Command("check-pairs", "Explore", "narrlit.commands.check_pairs:check_pairs"),
    Command("catalog", "Explore", "narrlit.commands.catalog:catalog"),
    Command(
        "serve",
        "Explore",
        "narrlit.serving.serve:serve",
        opens={"encoder": Opener("narrlit.encoding.loading:load", "Model")},
        without=(*READING, "cache"),
    ),
    Command("data sample", "Data", "narrlit.commands.sample:sample"),
    Command("data storyworld", "Data", "narrlit.data.storyworld.writing:write_storyworld"),
    Command(
        "data check",
        "Data",
        "narrlit.experiments.data_check:check_data",
        Output.result("check_data"),
        json=True,
    ),
    Command("data views", "Data", "narrlit.data.views_check:check_views", json=True),
    Command("data diversity", "Data", "narrlit.explore.diversity:diversity", json=True),
    Command("data pseudonymize", "Data", "narrlit.commands.pseudonymize:pseudonymize"),
    Command(
        "data mine",
        "Data",
        "narrlit.encoding.mining:mine",
        Output(suffixes=[".jsonl"], required=True),
        without=READING,
    ),
    Command("data augment", "Data", "narrlit.commands.augment:augment"),
    Command("generate", "Language models", "narrlit.llm.generation:generate", GENERATED),
    Command("judge", "Language models", "narrlit.experiments.judging:judge", JUDGED),
    Command("export", "Share", "narrlit.commands.export:export"),
    Command("demo", "Start", "narrlit.commands.demo:demo"),
]

FORMER = {
    "sample": "data sample",
    "storyworld": "data storyworld",
    "check-data": "data check",
    "views": "data views",
    "diversity": "data diversity",
    "pseudonymize": "data pseudonymize",
    "pseudonymise": "data pseudonymize",
    "mine": "data mine",
    "augment": "data augment",
    "push": "export",
}
"""Commands by their former names, which still work and print the new one."""
