#!/usr/bin/env python3
"""Holds documents to the tree: paths that they name exist, links lead somewhere, functions are in a file that the page names,
and C++ blocks are text of such a file.

    reference_test.py SOURCE_FOLDER DOCUMENT...
"""
import pathlib
import re
import sys

ROOTS = ("calibrate", "catalog", "cmake", "docs", "examples", "sim", "tests", "tools", "topologies", "traces", "workloads")
PATH = re.compile(r"^(?:%s)/[A-Za-z0-9_./-]*$" % "|".join(ROOTS))


def plain(text):
    """Without code blocks, whose text is no reference."""
    return re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)


def named_files(root, text):
    """The files of the tree that a page names in backticks, and the names that are none."""
    files, missing = [], []
    for words in re.findall(r"`([^`\n]+)`", plain(text)):
        word = words.split()[0]
        if not PATH.match(word) or "DEVICE" in word or "NAME" in word:
            continue
        if (root / word).exists():
            files.append(root / word)
        else:
            missing.append(word)
    return files, missing


def squeezed(text):
    return " ".join(text.split())


def faults_of(root, page):
    text = page.read_text()
    files, missing = named_files(root, text)
    for word in missing:
        yield f"names {word}, which does not exist"
    for link in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", plain(text)):
        if "://" not in link and not (page.parent / link).exists():
            yield f"links to {link}, which does not exist"
    if page.name == "README.md":  # of a folder, whose files it need not name
        files += [*page.parent.glob("*.h"), *page.parent.glob("*.cc")]
    sources = [file.read_text() for file in files if file.is_file()]
    for function in re.findall(r"`([a-z_0-9]+)\(\)`", plain(text)):
        if not any(re.search(rf"\b{function}\b", source) for source in sources):
            yield f"names {function}(), which no file that the page names has"
    flat = [squeezed(source) for source in sources]
    for block in re.findall(r"^```cpp\n(.*?)^```", text, re.MULTILINE | re.DOTALL):
        if not any(squeezed(block) in source for source in flat):
            yield f"shows code that no file that the page names has: {block.splitlines()[0]}"


def version_faults(root):
    """The version stands in four places."""
    version = re.search(r"project\(herdsim VERSION ([\d.]+)", (root / "CMakeLists.txt").read_text()).group(1)
    for name, form in (("CITATION.cff", f"version: {version}\n"), ("CHANGELOG.md", f"\n## {version}")):
        if form not in (root / name).read_text():
            yield name, f"has another version than {version}"


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    pages = [pathlib.Path(name).resolve() for name in sys.argv[2:]]
    faults = 0
    for page in pages:
        for fault in faults_of(root, page):
            faults += 1
            print(f"{page.relative_to(root)}: {fault}")
    for name, fault in version_faults(root):
        faults += 1
        print(f"{name}: {fault}")
    print(f"{len(pages)} documents, {faults} faults")
    return 1 if faults or not pages else 0


sys.exit(main())
