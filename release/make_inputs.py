"""Write inputs for the commands of extras: a small random model, configs, and a document."""

from pathlib import Path

from documents import write_docx
from tiny_models import write_tiny_model
from transformers import MarianConfig

write_tiny_model(Path("model"), "bert", "mean")
MarianConfig().save_pretrained("en-fr")
write_docx("tale.docx", "The Grail", "A knight seeks the grail for years, and finds it at home.")
learning_rate = "model.init_args.optimization.learning_rate: {low: 1.0e-6, high: 1.0e-4, log: true}"
Path("space.yaml").write_text(f"{learning_rate}\n", encoding="utf-8")
