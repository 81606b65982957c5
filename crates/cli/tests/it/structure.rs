//! The structure of the source: no circle of files, no wide struct, no long file, no long line.
//!
//! A file refers to another if it names one of its items: in a `use`, in a path, or through a name that a module
//! between them re-exports. A module that only declares and re-exports its parts refers to none of them. Files that
//! refer to one another in a circle can only be read together. A circle is allowed where the comment at the top of a
//! file says why: it contains "refer to one another, since", and every circle passes through such a file.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

use crate::workspace::{root, text_files};

/// The words in the comment at the top of a file that defend its circles.
const DEFENCE: &str = "refer to one another, since ";
/// The most fields of a struct.
const MOST_FIELDS: usize = 15;
/// The most lines of a file that is no test.
const MOST_LINES: usize = 500;
/// The most columns of a line.
const MOST_COLUMNS: usize = 120;

/// A module, with the names that it defines, imports and mentions.
#[derive(Debug, Default)]
struct Module {
    file: PathBuf,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    items: BTreeSet<String>,
    imports: Vec<Import>,
    /// Paths outside of imports.
    paths: BTreeSet<Vec<String>>,
    /// Structs with named fields, and their number.
    structs: Vec<(String, usize)>,
}

/// One name of a `use`. The name of a glob import is `*`.
#[derive(Debug)]
struct Import {
    path: Vec<String>,
    name: String,
    is_public: bool,
}

/// The target of a path.
enum Target {
    Module(usize),
    Item { module: usize, name: String },
}

/// The modules of a crate; the first one is its root.
#[derive(Debug, Default)]
struct Source {
    modules: Vec<Module>,
}

/// For each file, the files to which it refers, and the names that it takes.
type References = BTreeMap<PathBuf, BTreeMap<PathBuf, BTreeSet<String>>>;

fn is_punct(token: Option<&TokenTree>, wanted: char) -> bool {
    matches!(token, Some(TokenTree::Punct(punct)) if punct.as_char() == wanted)
}

fn is_group(token: Option<&TokenTree>, wanted: Delimiter) -> bool {
    matches!(token, Some(TokenTree::Group(group)) if group.delimiter() == wanted)
}

fn word(token: &TokenTree) -> Option<String> {
    if let TokenTree::Ident(ident) = token { Some(ident.to_string()) } else { None }
}

fn trees(stream: TokenStream) -> Vec<TokenTree> {
    stream.into_iter().collect()
}

/// The tokens of the item that begins `tokens`: up to a semicolon, or to the braces of a body.
fn item(tokens: &[TokenTree]) -> &[TokenTree] {
    let second = tokens.get(1).and_then(word);
    let is_value = match word(&tokens[0]).as_deref() {
        Some("const") => !matches!(second.as_deref(), Some("fn" | "unsafe" | "async" | "extern")),
        Some("static" | "type") => true,
        _ => false,
    };
    let is_end = |token: &TokenTree| is_punct(Some(token), ';') || !is_value && is_group(Some(token), Delimiter::Brace);
    let end = tokens.iter().position(is_end).map_or(tokens.len(), |end| end + 1);
    &tokens[..end]
}

/// The kind and the name of an item.
fn kind_and_name(item: &[TokenTree]) -> Option<(String, String)> {
    let mut words = item.iter().map_while(|token| match token {
        TokenTree::Literal(_) | TokenTree::Punct(_) => Some(String::new()),
        token => word(token),
    });
    let modifiers = ["", "async", "unsafe", "extern"];
    let mut kind = words.find(|word| !modifiers.contains(&word.as_str()))?;
    let mut names = words.filter(|word| !word.is_empty() && word != "mut").peekable();
    let is_modifier = |next: &String| ["fn", "async", "unsafe", "extern"].contains(&next.as_str());
    if kind == "const" && names.peek().is_some_and(is_modifier) {
        kind = names.find(|word| word == "fn")?;
    }
    let kinds = ["fn", "struct", "enum", "trait", "const", "static", "type", "union", "macro_rules"];
    if kinds.contains(&kind.as_str()) { Some((kind, names.next()?)) } else { None }
}

/// The number of named fields in the body of a struct: of commas outside of angle brackets, and what follows the last.
fn fields(body: &[TokenTree]) -> usize {
    let (mut depth, mut count, mut is_open) = (0_u32, 0, false);
    for (at, token) in body.iter().enumerate() {
        let is_arrow = at > 0 && is_punct(Some(&body[at - 1]), '-');
        match token {
            TokenTree::Punct(punct) if punct.as_char() == '<' => depth += 1,
            TokenTree::Punct(punct) if punct.as_char() == '>' && !is_arrow => depth -= 1,
            TokenTree::Punct(punct) if punct.as_char() == ',' && depth == 0 => is_open = false,
            _ if !is_open => {
                is_open = true;
                count += 1;
            }
            _ => {}
        }
    }
    count
}

/// The paths and names of a `use`.
fn imported(tokens: &[TokenTree], prefix: &[String]) -> Vec<(Vec<String>, String)> {
    let parts = tokens.split(|token| is_punct(Some(token), ','));
    let mut found = Vec::new();
    for part in parts.filter(|part| !part.is_empty()) {
        let mut path = prefix.to_vec();
        let mut name = None;
        let mut rest = part.iter();
        while let Some(token) = rest.next() {
            match token {
                TokenTree::Group(group) => {
                    found.extend(imported(&trees(group.stream()), &path));
                    path.clear();
                }
                TokenTree::Ident(ident) if ident == "as" => name = rest.next().and_then(word),
                TokenTree::Ident(ident) => path.push(ident.to_string()),
                token if is_punct(Some(token), '*') => name = Some("*".to_owned()),
                _ => {}
            }
        }
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        if let Some(last) = path.last() {
            let name = name.unwrap_or_else(|| last.clone());
            found.push((path, name));
        }
    }
    found
}

impl Source {
    /// Reads a crate from its root file, without its tests.
    fn read(file: &Path) -> Self {
        let mut source = Self::default();
        source.read_file(file, None, file.parent().unwrap());
        source
    }

    fn read_file(&mut self, file: &Path, parent: Option<usize>, folder: &Path) -> usize {
        let text = std::fs::read_to_string(file).unwrap();
        let stream: TokenStream = text.parse().unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        let module = self.modules.len();
        self.modules.push(Module { file: file.to_owned(), parent, ..Module::default() });
        self.read_items(&trees(stream), module, folder);
        module
    }

    fn read_items(&mut self, mut tokens: &[TokenTree], module: usize, folder: &Path) {
        let (mut is_test, mut is_public) = (false, false);
        while let Some(first) = tokens.first() {
            let first_word = word(first);
            if is_punct(Some(first), '#') {
                let at = if is_punct(tokens.get(1), '!') { 2 } else { 1 };
                let TokenTree::Group(attribute) = &tokens[at] else { panic!("an attribute has brackets") };
                let text: String = attribute.stream().to_string().split_whitespace().collect();
                is_test |= text == "cfg(test)" || text.starts_with("cfg(all(test");
                if !is_test {
                    self.mention(&trees(attribute.stream()), module);
                }
                tokens = &tokens[at + 1..];
                continue;
            }
            if first_word.as_deref() == Some("pub") {
                is_public = true;
                let is_restricted = is_group(tokens.get(1), Delimiter::Parenthesis);
                tokens = &tokens[if is_restricted { 2 } else { 1 }..];
                continue;
            }
            let item = item(tokens);
            if !is_test {
                match first_word.as_deref() {
                    Some("mod") => self.read_module(item, module, folder),
                    Some("use") => self.import(&item[1..item.len() - 1], module, is_public),
                    _ => {
                        self.define(item, module);
                        self.mention(item, module);
                    }
                }
            }
            tokens = &tokens[item.len()..];
            (is_test, is_public) = (false, false);
        }
    }

    fn read_module(&mut self, item: &[TokenTree], parent: usize, folder: &Path) {
        let name = word(&item[1]).expect("a module has a name");
        let inside = folder.join(&name);
        let module = if let TokenTree::Group(body) = &item[2] {
            let file = self.modules[parent].file.clone();
            self.modules.push(Module { file, parent: Some(parent), ..Module::default() });
            let module = self.modules.len() - 1;
            self.read_items(&trees(body.stream()), module, &inside);
            module
        } else {
            let files = [folder.join(format!("{name}.rs")), inside.join("mod.rs")];
            let file = files.iter().find(|file| file.exists());
            self.read_file(file.unwrap_or_else(|| panic!("{} has no file", inside.display())), Some(parent), &inside)
        };
        self.modules[parent].children.insert(name, module);
    }

    fn define(&mut self, item: &[TokenTree], module: usize) {
        let Some((kind, name)) = kind_and_name(item) else { return };
        if kind == "struct"
            && let Some(TokenTree::Group(body)) = item.last()
        {
            self.modules[module].structs.push((name.clone(), fields(&trees(body.stream()))));
        }
        self.modules[module].items.insert(name);
    }

    /// Notes the paths that tokens mention, and the imports in function bodies.
    fn mention(&mut self, tokens: &[TokenTree], module: usize) {
        let mut at = 0;
        while at < tokens.len() {
            match &tokens[at] {
                TokenTree::Group(group) => self.mention(&trees(group.stream()), module),
                // `impl Trait + use<'a>` imports nothing.
                TokenTree::Ident(ident) if ident == "use" && !is_punct(tokens.get(at + 1), '<') => {
                    let import = item(&tokens[at..]);
                    self.import(&import[1..import.len() - 1], module, false);
                    at += import.len() - 1;
                }
                // A field or a method is no path.
                TokenTree::Ident(first) if at == 0 || !is_punct(tokens.get(at - 1), '.') => {
                    let mut path = vec![first.to_string()];
                    while is_punct(tokens.get(at + 1), ':')
                        && is_punct(tokens.get(at + 2), ':')
                        && let Some(next) = tokens.get(at + 3).and_then(word)
                    {
                        path.push(next);
                        at += 3;
                    }
                    self.modules[module].paths.insert(path);
                }
                _ => {}
            }
            at += 1;
        }
    }

    fn import(&mut self, tokens: &[TokenTree], module: usize, is_public: bool) {
        let imports = imported(tokens, &[]).into_iter().map(|(path, name)| Import { path, name, is_public });
        self.modules[module].imports.extend(imports);
    }

    /// The target of a path in a module; `None` for that of another crate, and for a local name. `seen` has the
    /// imported names that were followed.
    fn resolve(&self, path: &[String], from: usize, seen: &mut BTreeSet<(usize, String)>) -> Option<Target> {
        let mut module = from;
        for (at, segment) in path.iter().enumerate() {
            match segment.as_str() {
                "crate" if at == 0 => module = 0,
                "self" if at == 0 => {}
                "super" => module = self.modules[module].parent?,
                name => match self.modules[module].children.get(name) {
                    Some(child) => module = *child,
                    None if self.modules[module].items.contains(name) => {
                        return Some(Target::Item { module, name: name.to_owned() });
                    }
                    None => return self.resolve_imported(&path[at..], module, seen),
                },
            }
        }
        Some(Target::Module(module))
    }

    /// As [`Source::resolve`], for a path whose first segment is imported into the module.
    fn resolve_imported(&self, path: &[String], module: usize, seen: &mut BTreeSet<(usize, String)>) -> Option<Target> {
        if !seen.insert((module, path[0].clone())) {
            return None;
        }
        let imports = &self.modules[module].imports;
        for import in imports.iter().filter(|import| import.name == path[0]) {
            match self.resolve(&import.path, module, seen) {
                Some(Target::Module(target)) if path.len() > 1 => return self.resolve(&path[1..], target, seen),
                Some(target) => return Some(target),
                None => {}
            }
        }
        imports.iter().filter(|import| import.name == "*").find_map(|import| {
            match self.resolve(&import.path, module, seen)? {
                Target::Module(target) if target != module => self.resolve(path, target, seen),
                _ => None,
            }
        })
    }

    /// The references between the files of the crate.
    fn references(&self) -> References {
        let mut references = References::new();
        for (index, module) in self.modules.iter().enumerate() {
            // A re-export counts where the module itself mentions the name.
            let imports = module.imports.iter().filter(|import| !import.is_public).map(|import| &import.path);
            for path in imports.chain(&module.paths) {
                if let Some(Target::Item { module: target, name }) = self.resolve(path, index, &mut BTreeSet::new())
                    && self.modules[target].file != module.file
                {
                    let from = references.entry(module.file.clone()).or_default();
                    from.entry(self.modules[target].file.clone()).or_default().insert(name);
                }
            }
        }
        references
    }
}

/// The files that `from` refers to, directly or by way of others.
fn reached<'a>(references: &'a References, from: &'a Path) -> BTreeSet<&'a Path> {
    let mut reached = BTreeSet::new();
    let mut open = vec![from];
    while let Some(file) = open.pop() {
        let next = references.get(file).into_iter().flat_map(BTreeMap::keys).map(PathBuf::as_path);
        open.extend(next.filter(|next| reached.insert(*next)));
    }
    reached
}

/// The references of every circle, a line each: file -> file and the names that the first takes.
fn circles(references: &References) -> Vec<String> {
    let reach: BTreeMap<&Path, BTreeSet<&Path>> =
        references.keys().map(|file| (file.as_path(), reached(references, file))).collect();
    let is_circle = |one: &Path, other: &Path| reach.get(other).is_some_and(|reached| reached.contains(one));
    let mut lines = Vec::new();
    for (from, targets) in references {
        for (to, names) in targets.iter().filter(|(to, _)| is_circle(from, to)) {
            let names = names.iter().map(String::as_str).collect::<Vec<_>>().join(", ");
            lines.push(format!("{} -> {}: {names}", from.display(), to.display()));
        }
    }
    lines
}

/// True if the comment at the top of a file defends the circles through it.
fn defends(text: &str) -> bool {
    let comment = text.lines().map_while(|line| line.strip_prefix("//!"));
    let comment: Vec<&str> = comment.flat_map(str::split_whitespace).collect();
    format!("{} ", comment.join(" ")).contains(DEFENCE)
}

/// The root files of all crates, relative to the workspace.
fn crate_roots() -> Vec<PathBuf> {
    let is_root = |path: &str| {
        let parts: Vec<&str> = path.split('/').collect();
        matches!(parts.as_slice(), ["crates", _, "src", "lib.rs" | "main.rs"] | ["fuzz", "src", "lib.rs"])
    };
    text_files().into_iter().map(|(path, _)| path).filter(|path| is_root(path)).map(PathBuf::from).collect()
}

#[test]
fn no_files_refer_to_one_another_in_a_circle_that_no_comment_defends() {
    let roots = crate_roots();
    assert!(roots.len() > 20, "the crates are where the test looks: {roots:?}");
    let mut found = Vec::new();
    for file in roots {
        let mut references = Source::read(&root().join(&file)).references();
        assert!(!references.is_empty() || file.ends_with("fuzz/src/lib.rs"), "{} refers to no file", file.display());
        references.retain(|file, _| !defends(&std::fs::read_to_string(file).unwrap()));
        found.extend(circles(&references));
    }
    let found = found.join("\n").replace(&format!("{}/", root().display()), "");
    assert!(found.is_empty(), "move the shared item to the lower file, or defend the circle (\"{DEFENCE}\"):\n{found}");
}

#[test]
fn a_struct_has_at_most_fifteen_fields() {
    let sources = crate_roots().into_iter().map(|file| Source::read(&root().join(file)));
    let structs = sources.flat_map(|source| source.modules).flat_map(|module| {
        let Module { file, structs, .. } = module;
        structs.into_iter().map(move |(name, fields)| (file.clone(), name, fields))
    });
    let (wide, narrow): (Vec<_>, Vec<_>) = structs.partition(|(.., fields)| *fields > MOST_FIELDS);
    assert!(narrow.iter().any(|(.., fields)| *fields == MOST_FIELDS), "the count of fields is right");
    assert!(wide.is_empty(), "group the fields that belong together: {wide:#?}");
}

#[test]
fn a_file_has_at_most_five_hundred_lines() {
    let files = text_files().into_iter().filter(|(path, _)| path.ends_with(".rs"));
    let long: Vec<(String, usize)> =
        files.map(|(path, text)| (path, text.lines().count())).filter(|(_, lines)| *lines > MOST_LINES).collect();
    assert!(long.is_empty(), "divide these files by their purposes: {long:#?}");
}

/// Files of Rust, shell, Python, JavaScript, TypeScript and CSS. The folders that are passed over have what a program
/// wrote (the dashboard's page, the script of reports), style sheets that are embedded as they are, and prose as data
/// (the texts of stories).
#[test]
fn a_line_of_code_has_at_most_120_columns() {
    let endings = [".rs", ".sh", ".bash", ".py", ".mjs", ".ts", ".css"];
    let apart = ["crates/dashboard/page/", "crates/results/assets/", "web/src/stories/texts/"];
    let is_read = |path: &str| {
        let is_code = endings.iter().any(|ending| path.ends_with(ending));
        is_code && !apart.iter().any(|folder| path.starts_with(folder))
    };
    let mut long = Vec::new();
    for (path, text) in text_files().into_iter().filter(|(path, _)| is_read(path)) {
        let lines = text.lines().zip(1..).filter(|(line, _)| line.chars().count() > MOST_COLUMNS);
        long.extend(lines.map(|(_, number)| format!("{path}:{number}")));
    }
    assert!(long.is_empty(), "{}", long.join("\n"));
}

/// A crate in a temporary folder, by the paths and texts of its files.
fn references_of(files: &[(&str, &str)]) -> References {
    let folder = tempfile::tempdir().unwrap();
    for (path, text) in files {
        let path = folder.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let references = Source::read(&folder.path().join("lib.rs")).references();
    let relative = |path: PathBuf| path.strip_prefix(folder.path()).unwrap().to_owned();
    let targets = |to: BTreeMap<PathBuf, _>| to.into_iter().map(|(to, names)| (relative(to), names)).collect();
    references.into_iter().map(|(from, to)| (relative(from), targets(to))).collect()
}

#[test]
fn a_circle_is_found_through_re_exports_globs_paths_and_parents() {
    let lib = "mod a; mod b; pub use a::A; pub use b::B;";
    let b = "use crate::A; pub struct B(A);";
    // The name of an item in each form in which a file can mention it.
    for a in [
        "use crate::b::B; pub struct A(Box<B>);",
        "use super::B as Other; pub struct A(Box<Other>);",
        "use crate::b::*; pub struct A(Box<B>);",
        "pub struct A(Box<crate::b::B>);",
        "use crate::b; pub struct A(Box<b::B>);",
        "pub struct A; impl A { fn b() { use crate::b::B; } }",
        "pub struct A; fn b() { panic!(\"{:?}\", crate::B(A)) }",
    ] {
        let circles = circles(&references_of(&[("lib.rs", lib), ("a.rs", a), ("b.rs", b)]));
        assert_eq!(circles, ["a.rs -> b.rs: B", "b.rs -> a.rs: A"], "{a}");
    }
    let parent = "mod part; use part::Part; pub struct Whole(Part);";
    let part = "use super::Whole; pub struct Part; impl Whole {}";
    let circles = circles(&references_of(&[("lib.rs", parent), ("part.rs", part)]));
    assert_eq!(circles, ["lib.rs -> part.rs: Part", "part.rs -> lib.rs: Whole"]);
}

#[test]
fn re_exports_tests_and_comments_make_no_circle() {
    let lib = "mod a; mod b; pub use a::A; pub use b::B;";
    let b = "use crate::A; pub struct B(A);";
    for a in [
        "pub struct A; #[cfg(test)] mod tests { use crate::B; }",
        "/// As [`crate::B`].\npub struct A; // use crate::B;\nconst TEXT: &str = \"crate::B\";",
        "pub struct A; impl A { fn b(&self) -> u8 { self.b } }",
    ] {
        let circles = circles(&references_of(&[("lib.rs", lib), ("a.rs", a), ("b.rs", b)]));
        assert!(circles.is_empty(), "{a}: {circles:?}");
    }
    assert!(defends("//! One type.\n//! These files refer to one\n//! another, since they are one type.\nmod a;"));
    assert!(!defends("//! One type.\n\n// These files refer to one another, since they are one type.\nmod a;"));
}

#[test]
fn fields_are_counted_without_the_commas_of_their_types() {
    let body: TokenStream =
        "/** Text, text. */ pub a: Map<K, V>, b: fn(u8, u8) -> Vec<u8>, #[x(y, z)] c: (u8, u8),".parse().unwrap();
    assert_eq!(fields(&trees(body)), 3);
}
