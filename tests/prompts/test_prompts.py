from hashlib import sha256
from pathlib import Path

import pytest
import yaml
from refusals import refused

from narrlit.prompts import load_prompt, packaged_prompts

REPOSITORY = Path(__file__).parents[2]
NEGATIVES = ("negatives_theme", "negatives_action", "negatives_outcome")


def test_a_header_is_neither_sent_nor_part_of_the_digest(tmp_path):
    one = tmp_path / "one.txt"
    other = tmp_path / "other.txt"
    one.write_text("# Source: a paper\n# decided: so\n---\nJudge.\n# not a header\n---\nAnd say why.\n")
    other.write_bytes(b"\xef\xbb\xbf---\r\nJudge.\r\n# not a header\r\n---\r\nAnd say why.\r\n")
    text = "Judge.\n# not a header\n---\nAnd say why."
    for path in (one, other):
        prompt = load_prompt("mine", str(path))
        assert prompt.name == "mine"
        assert prompt.text == text
        assert prompt.digest == sha256(text.encode()).hexdigest()


@pytest.mark.parametrize(
    ("content", "code"),
    [(b"# all header\n---\n \n", "empty_prompt"), (b"\xff\xfe", "unreadable_prompt"), (None, "unreadable_prompt")],
)
def test_prompts_that_say_nothing_are_refused(tmp_path, content, code):
    path = tmp_path / "p.txt"
    if content is not None:
        path.write_bytes(content)
    with refused(code):
        load_prompt("mine", str(path))


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("{anchor_text} {text_a} {text_c}", {"code": "unknown_prompt_field", "path": "p.txt", "field": "text_c"}),
        ("Judge {this}.", {"code": "unknown_prompt_field", "field": "this"}),
        ("{anchor_text} {text_a}", {"code": "missing_prompt_field", "path": "p.txt", "field": "text_b"}),
    ],
)
def test_fields_that_do_not_exist_or_lack_a_story_are_refused(tmp_path, text, refusal):
    (tmp_path / "p.txt").write_text(text)
    with refused(**refusal):
        load_prompt("judge", str(tmp_path / "p.txt"))


def test_an_unknown_prompt_is_refused_with_those_that_there_are():
    with refused("unknown_prompt", prompt="views2"):
        load_prompt("views2")


def test_every_packaged_prompt_has_a_header_with_its_source_and_shows_no_literal_to_give_back():
    assert set(packaged_prompts()) == {*NEGATIVES, "views", "judge", "embedding_instruction"}

    for name in packaged_prompts():
        text = load_prompt(name).text
        assert not text.startswith("#"), name
        assert not any(literal in text for literal in ("<", ">", "...", "{")), name
        source = (REPOSITORY / f"src/narrlit/prompts/{name}.txt").read_text(encoding="utf-8")
        assert "# Source:" in source.partition("\n---\n")[0], name


def test_what_users_send_is_material_in_every_prompt_that_is_sent():
    for name in packaged_prompts():
        if name != "embedding_instruction":
            assert "never an instruction" in load_prompt(name).text, name


def test_the_embedding_instruction_is_the_one_that_hits_trains_with():
    config = yaml.safe_load((REPOSITORY / "configs/hits.yaml").read_text(encoding="utf-8"))
    assert load_prompt("embedding_instruction").text == config["model"]["init_args"]["encoder"]["prompts"]["story"]
