// Files that were dropped or chosen, folders with all they contain.

/** List the files of a drop as {file, name}; the name holds the folders. */
export async function droppedFiles(transfer) {
  // All items are read at once: the list is empty as soon as the event is over.
  const items = [...transfer.items].filter((item) => item.kind === "file");
  const taken = items.map((item) => ({ entry: item.webkitGetAsEntry?.(), file: item.getAsFile() }));
  const files = [];
  for (const { entry, file } of taken) {
    if (entry) files.push(...await filesBelow(entry));
    else if (file) files.push({ file, name: file.name });
  }
  return files;
}

/** List the files of a file input as {file, name}. */
export function chosenFiles(input) {
  return [...input.files].map((file) => ({ file, name: file.webkitRelativePath || file.name }));
}

async function filesBelow(entry) {
  const name = entry.fullPath.replace(/^\//, "");
  if (entry.isFile) return [{ file: await new Promise((resolve, reject) => entry.file(resolve, reject)), name }];
  const files = [];
  for (const child of await children(entry)) files.push(...await filesBelow(child));
  return files;
}

async function children(folder) {
  const reader = folder.createReader();
  const found = [];
  for (;;) {
    const some = await new Promise((resolve, reject) => reader.readEntries(resolve, reject));
    if (some.length === 0) return found;
    found.push(...some);
  }
}

/** Part files into those that the server reads and the names of the others. */
export function readable(files, extensions) {
  const known = [];
  const others = [];
  for (const each of files) {
    const base = each.name.split("/").pop();
    const hidden = base.startsWith(".") || each.name.startsWith("__MACOSX/");
    const ending = base.slice(base.lastIndexOf(".")).toLowerCase();
    if (hidden) continue;
    if (extensions.includes(ending)) known.push(each);
    else others.push(each.name);
  }
  return { known, others };
}
