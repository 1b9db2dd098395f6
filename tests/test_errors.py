"""What is quoted from the message of a library."""

import pytest
import torch

from narrlit.errors import ModelError, reading


class Unsafe:
    """An object that does not belong in a file of weights."""


def test_advice_to_run_what_is_in_a_file_is_left_out(tmp_path):
    torch.save({"weight": Unsafe()}, tmp_path / "model.bin")
    with pytest.raises(ModelError) as caught, reading("model", "a/model.bin", "export it again", ModelError):
        torch.load(tmp_path / "model.bin", weights_only=True)
    assert "weights_only" in str(caught.value.__cause__)

    message = str(caught.value)
    assert message.startswith("model a/model.bin: Weights only load failed. ")
    assert "Unsupported global" in message
    assert not [word for word in ("weights_only", "torch.load", "arbitrary code", "trusted") if word in message]
    assert message.endswith("; export it again")


def test_advice_to_trust_code_is_left_out_and_the_cause_stays():
    with pytest.raises(ModelError) as caught, reading("model", "m", error=ModelError):
        raise ValueError(
            "The repository m contains custom code which must be executed to correctly load the model.\n"
            "Please pass the argument `trust_remote_code=True` to allow custom code to be run."
        )
    assert str(caught.value) == (
        "model m: The repository m contains custom code which must be executed to correctly load the model."
    )


def test_a_message_of_advice_alone_becomes_the_name_of_the_error():
    with pytest.raises(ModelError, match=r"^model m: ValueError$"), reading("model", "m", error=ModelError):
        raise ValueError("Pass trust_remote_code=True.")
