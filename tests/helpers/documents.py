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
    shown = " T* ".join(f"({line}) Tj" for line in lines)
    stream = f"BT /F1 12 Tf 14 TL 72 720 Td {shown} ET"
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
        "/Resources << /Font << /F1 << /Type /Font /Subtype /Type1 /BaseFont /Helvetica >> >> >> >>",
        f"<< /Length {len(stream)} >>\nstream\n{stream}\nendstream",
    ]
    body, places = "%PDF-1.4\n", []
    for number, content in enumerate(objects, start=1):
        places.append(len(body))
        body += f"{number} 0 obj\n{content}\nendobj\n"
    table = "".join(f"{place:010d} 00000 n \n" for place in places)
    end = f"xref\n0 5\n0000000000 65535 f \n{table}trailer\n<< /Size 5 /Root 1 0 R >>\nstartxref\n{len(body)}\n%%EOF\n"
    path.write_bytes((body + end).encode())


def _zip(path, members):
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)
