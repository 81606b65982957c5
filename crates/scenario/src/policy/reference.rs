//! The reference of the policy file, printed from its schema.

use super::schema::SECTIONS;
use crate::reference::render_section;

const INTRODUCTION: &str = "\
# The policy file

<!-- Printed from the code by `cargo run -p lastmile-scenario --example policy-reference`; a test holds the two \
                            together. -->

A policy is a [TOML](https://toml.io) file that says how the upstream of a line is shared: line, classes, rules. It \
                            speaks of shares of
the line, so that one file serves many lines. `lastmile policy list` names those that come with the program, \
                            `lastmile policy show NAME`
prints one with its rates, `lastmile policy check FILE` reads one of your own. A scenario takes one by \
                            `policy = \"sad-cbq\"` in
`[access]`, in place of the queue of `up`; `lastmile run --policy NAME` does the same, and `lastmile compare` runs \
                            several side by side.

```toml
[line]
encapsulation = \"pppoa-vcmux\"
up = \"768 kbit/s\"
down = \"8 Mbit/s\"

[ack]
factor = 1.5
regulate = { kind = \"sad\" }

[[class]]
name = \"interactive\"
rate = \"20 %\"
ceil = \"20 %\"
priority = 0

[[class]]
name = \"default\"
rate = \"80 %\"

[[rule]]
class = \"interactive\"
match = { protocol = \"tcp\", port = 22, tos = \"minimize-delay\" }
```

Values, queues and conditions are those of [the scenario file](scenario.md). Order decides: every rule is asked, \
                            and the last that matches
names the class, so that a later rule may re-mark; a rule with `final = true` ends the list where it matches.
";

/// The whole reference, as Markdown.
#[must_use]
pub fn render() -> String {
    let mut text = INTRODUCTION.to_owned();
    text.push('\n');
    for section in SECTIONS {
        render_section(&mut text, section, "");
    }
    text.truncate(text.trim_end().len());
    text.push('\n');
    // In this file headings are one level higher, and keys shared with scenarios are described in the other.
    text.replace("\n### ", "\n## ").replace("](#encapsulations)", "](scenario.md#encapsulations)")
}
