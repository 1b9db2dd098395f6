"""Former place of narrlit.console and narrlit.options; remove when nothing imports it."""

from narrlit.console import say, say_truncated
from narrlit.options import Device, pick_device

__all__ = ["Device", "pick_device", "say", "say_truncated"]
