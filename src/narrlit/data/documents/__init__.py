"""Text files and documents as plain text: paragraphs and headings in reading order, without marks of their formats."""
