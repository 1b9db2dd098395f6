"""Write inputs for the commands of extras: a small random model, the config of a translation model, and a document."""

from pathlib import Path

from documents import write_docx
from tiny_models import write_tiny_model
from transformers import MarianConfig

write_tiny_model(Path("model"), "bert", "mean")
MarianConfig().save_pretrained("en-fr")
write_docx("tale.docx", "The Grail", "A knight seeks the grail for years, and finds it at home.")
