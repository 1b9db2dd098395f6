"""Documents as small as their formats allow."""

import zipfile


def write_docx(path, title, *paragraphs):
    """Write a heading and paragraphs."""
    namespace = "http://schemas.openxmlformats.org/wordprocessingml/2006/main"
    kinds = "application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"
    relation = "http://schemas.openxmlformats.org/officeDocument/2006/relationships/officeDocument"
    runs = [f'<w:p><w:pPr><w:pStyle w:val="Heading1"/></w:pPr><w:r><w:t>{title}</w:t></w:r></w:p>']
    runs += [f"<w:p><w:r><w:t>{text}</w:t></w:r></w:p>" for text in paragraphs]
    _zip(
        path,
        {
            "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types">'
            '<Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/>'
            f'<Override PartName="/word/document.xml" ContentType="{kinds}"/></Types>',
            "_rels/.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">'
            f'<Relationship Id="r1" Type="{relation}" Target="word/document.xml"/></Relationships>',
            "word/document.xml": f'<w:document xmlns:w="{namespace}"><w:body>{"".join(runs)}</w:body></w:document>',
            "word/styles.xml": f'<w:styles xmlns:w="{namespace}"><w:style w:type="paragraph" w:styleId="Heading1">'
            '<w:name w:val="heading 1"/></w:style></w:styles>',
            "word/_rels/document.xml.rels": '<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/'
            'relationships"><Relationship Id="s1" Type="http://schemas.openxmlformats.org/officeDocument/2006/'
            'relationships/styles" Target="styles.xml"/></Relationships>',
        },
    )


def write_epub(path, title, *paragraphs):
    """Write a book of one chapter without a heading."""
    text = "".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
    _zip(
        path,
        {
            "mimetype": "application/epub+zip",
            "META-INF/container.xml": '<container><rootfiles><rootfile full-path="c.opf"/></rootfiles></container>',
            "c.opf": '<package xmlns:dc="http://purl.org/dc/elements/1.1/"><metadata><dc:title>'
            f"{title}</dc:title><dc:creator>Nobody</dc:creator><dc:language>en</dc:language></metadata><manifest>"
            '<item id="c1" href="c1.xhtml"/></manifest><spine><itemref idref="c1"/></spine></package>',
            "c1.xhtml": f"<html><body>{text}</body></html>",
        },
    )


def write_pdf(path, *lines):
    """Write one page with lines of text; without any it is a page like that of a scan."""
    _write_pages(path, [_shown(lines, 72, 720)])


def write_pdf_columns(path, pages, head):
    """Write pages of two columns, each of lines, below a running head with the number of the page."""
    streams = []
    for number, (left, right) in enumerate(pages, start=1):
        streams.append(_shown([f"{head} {number}"], 72, 760) + _shown(left, 72, 640) + _shown(right, 330, 640))
    _write_pages(path, streams)


def write_pdf_vertical(path, columns):
    """Write a page whose characters stand below one another, in columns from right to left."""
    shown = ""
    for column, text in enumerate(columns):
        for row, character in enumerate(text):
            shown += f"BT /F1 12 Tf 1 0 0 1 {500 - 24 * column} {700 - 12 * row} Tm ({character}) Tj ET\n"
    _write_pages(path, [shown])


def write_pdf_turned(path, lines, label):
    """Write a page of lines with a label at its margin that is turned by a quarter."""
    _write_pages(path, [_shown(lines, 72, 720) + f"BT /F1 12 Tf 0 1 -1 0 40 300 Tm ({label}) Tj ET\n"])


def _shown(lines, x, y):
    shown = " T* ".join(f"({line}) Tj" for line in lines)
    return f"BT /F1 12 Tf 14 TL {x} {y} Td {shown} ET\n"


def _write_pages(path, streams):
    numbers = [3 + 2 * index for index in range(len(streams))]
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{' '.join(f'{number} 0 R' for number in numbers)}] /Count {len(numbers)} >>",
    ]
    for number, stream in zip(numbers, streams, strict=True):
        objects.append(
            f"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents {number + 1} 0 R "
            "/Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>"
        )
        objects.append(f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream")
    body, places = "%PDF-1.4\n", []
    for number, content in enumerate(objects, start=1):
        places.append(len(body))
        body += f"{number} 0 obj\n{content}\nendobj\n"
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    size = len(objects) + 1
    end = f"xref\n0 {size}\n0000000000 65535 f \n{table}trailer\n<< /Size {size} /Root 1 0 R >>\n"
    path.write_bytes((body + end + f"startxref\n{len(body)}\n%%EOF\n").encode())


def _zip(path, members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
