#!/usr/bin/env python3
"""The page of the Python API, from signatures and docstrings of the package: prints Markdown.

    scripts/python-api.py > python-api.md

Signatures of the extension module come from `_lastmile.pyi`, its docstrings from the comments of the crate `python`.
Nothing is imported, so that the package need not be built.
"""

import ast
import pathlib
import re
import sys
import textwrap

ROOT = pathlib.Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "crates/python/python/lastmile"
RUST = ROOT / "crates/python/src"

HEAD = """# Python API

Signatures and docstrings of the package `lastmile`. The guide [Python](../guides/python.md) shows how its parts work \
together.
"""


def module(path: pathlib.Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def exported(tree: ast.Module) -> list[str]:
    """The names of `__all__`."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and any(isinstance(to, ast.Name) and to.id == "__all__" for to in node.targets):
            return ast.literal_eval(node.value)
    raise SystemExit("python-api: a module has no __all__")


def definitions(tree: ast.Module) -> dict[str, ast.AST]:
    return {node.name: node for node in tree.body if isinstance(node, (ast.FunctionDef, ast.ClassDef))}


def rust_docs() -> dict[str, str]:
    """Comments of classes (`Class`) and of their methods (`Class.method`)."""
    docs: dict[str, str] = {}
    for path in sorted(RUST.glob("*.rs")):
        comment: list[str] = []
        attributes: list[str] = []
        methods = owner = None
        for line in path.read_text(encoding="utf-8").splitlines():
            text = line.strip()
            if text.startswith("///"):
                comment.append(text[3:].removeprefix(" "))
            elif text.startswith("#["):
                attributes.append(text)
            elif text:
                if found := re.match(r"(?:pub(?:\(crate\))? )?struct (\w+)", text):
                    if any(one.startswith("#[pyclass") for one in attributes):
                        docs[found[1]] = "\n".join(comment)
                elif found := re.match(r"impl (\w+) \{", text):
                    methods = "#[pymethods]" in attributes
                    owner = found[1]
                elif methods and line.startswith("    ") and (found := re.match(r"fn (\w+)", text)):
                    docs[f"{owner}.{found[1]}"] = "\n".join(comment)
                elif line == "}":
                    methods = None
                comment, attributes = [], []
    return docs


def signature(node: ast.FunctionDef, name: str, is_method: bool) -> str:
    arguments = node.args
    if is_method:
        arguments = ast.arguments(**{field: getattr(arguments, field) for field in arguments._fields})
        drop = "posonlyargs" if arguments.posonlyargs else "args"
        setattr(arguments, drop, getattr(arguments, drop)[1:])
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    inner = re.sub(r"(?<=[\w\]])=(?=[\w'\"-])", " = ", ast.unparse(arguments))
    one = f"{name}({inner}){returns}"
    if len(one) <= 100:
        return one
    parts = inner.split(", ")
    # A comma inside brackets does not end an argument.
    whole: list[str] = []
    for part in parts:
        if whole and whole[-1].count("[") + whole[-1].count("(") > whole[-1].count("]") + whole[-1].count(")"):
            whole[-1] += f", {part}"
        else:
            whole.append(part)
    return f"{name}(\n" + "".join(f"    {part},\n" for part in whole) + f"){returns}"


def decorated(node: ast.FunctionDef, name: str) -> bool:
    return any(isinstance(one, ast.Name) and one.id == name for one in node.decorator_list)


def prose(doc: str | None) -> str:
    """A docstring as Markdown: examples become blocks, names in two backquotes one."""
    blocks = []
    for block in re.split(r"\n\s*\n", textwrap.dedent(doc or "").strip()):
        if block.startswith(">>> "):
            blocks.append(f"```python\n{block}\n```")
        else:
            blocks.append(block.replace("``", "`").replace("<", "&lt;"))
    return "\n\n".join(blocks)


def code(text: str) -> str:
    return f"```python\n{text}\n```"


def function(node: ast.FunctionDef, name: str, doc: str | None, level: str) -> str:
    short = name.rsplit(".", 1)[-1]
    return f"{level} `{name}`\n\n{code(signature(node, short, is_method=False))}\n\n{prose(doc)}"


def member(node: ast.AST, owner: str, docs: dict[str, str], following: ast.AST | None) -> str | None:
    """A method, property or field of a class as an entry of a list."""
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and not node.target.id.startswith("_"):
        told = (
            following.value.value
            if isinstance(following, ast.Expr) and isinstance(following.value, ast.Constant)
            else ""
        )
        return f"- **`{node.target.id}: {ast.unparse(node.annotation)}`**\n\n{textwrap.indent(prose(str(told)), '  ')}"
    if not isinstance(node, ast.FunctionDef) or (
        node.name.startswith("_") and node.name not in {"__call__", "__len__"}
    ):
        return None
    doc = ast.get_docstring(node) or docs.get(f"{owner}.{node.name}")
    if decorated(node, "property"):
        head = f"`{node.name}: {ast.unparse(node.returns)}`" if node.returns else f"`{node.name}`"
    else:
        head = f"`{' '.join(signature(node, node.name, is_method=True).split())}`".replace("( ", "(").replace(
            ", )", ")"
        )
    return f"- **{head}**\n\n{textwrap.indent(prose(doc), '  ')}".rstrip()


def class_page(node: ast.ClassDef, name: str, docs: dict[str, str], level: str) -> str:
    doc = ast.get_docstring(node) or docs.get(node.name)
    following = [*node.body[1:], None]
    members = [member(one, node.name, docs, after) for one, after in zip(node.body, following, strict=True)]
    parts = [f"{level} `{name}`", prose(doc), *[one for one in members if one]]
    return "\n\n".join(part for part in parts if part)


def entries(
    names: list[str], sources: list[dict[str, ast.AST]], docs: dict[str, str], prefix: str, level: str
) -> list[str]:
    page = []
    for name in names:
        node = next((found[name] for found in sources if name in found), None)
        if isinstance(node, ast.FunctionDef):
            page.append(function(node, prefix + name, ast.get_docstring(node), level))
        elif isinstance(node, ast.ClassDef):
            page.append(class_page(node, prefix + name, docs, level))
        elif not name.startswith("_") and not (PACKAGE / name).is_dir() and not (PACKAGE / f"{name}.py").is_file():
            raise SystemExit(f"{prefix}{name} is exported and defined in none of the files that are read")
    return page


def main() -> None:
    docs = rust_docs()
    stub = definitions(module(PACKAGE / "_lastmile.pyi"))
    # The names of the package come from these files.
    own = [
        definitions(module(PACKAGE / f"{name}.py")) for name in ["_runs", "_study", "_errors", "_own", "_quantities"]
    ]
    names = exported(module(PACKAGE / "__init__.py"))
    functions = [name for name in names if not name[0].isupper()]
    classes = [name for name in names if name[0].isupper()]
    page = [HEAD.strip(), "## Functions", *entries(functions, own, docs, "lastmile.", "###")]
    page += ["## Classes", *entries(classes, [*own, stub], docs, "lastmile.", "###")]
    for name in ["linklayer", "theory"]:
        tree = module(PACKAGE / f"{name}.py")
        page += [f"## `lastmile.{name}`", prose(ast.get_docstring(tree))]
        page += entries(exported(tree), [definitions(tree)], docs, f"lastmile.{name}.", "###")
    plots = PACKAGE / "plot"
    tree = module(plots / "__init__.py")
    page += ["## `lastmile.plot`", prose(ast.get_docstring(tree))]
    parts = [definitions(module(path)) for path in sorted(plots.glob("_*.py"))]
    page += entries(exported(tree), parts, docs, "lastmile.plot.", "###")
    sys.stdout.write("\n\n".join(part for part in page if part) + "\n")


if __name__ == "__main__":
    main()
