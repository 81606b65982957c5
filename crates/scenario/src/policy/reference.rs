//! The reference of the policy file, printed from its schema.

use super::schema::SECTIONS;
use crate::reference::render_section;

const INTRODUCTION: &str = "\
# The policy file

<!-- Printed from the code by `cargo run -p lastmile-scenario --example policy-reference`; a test holds the two \
                            together. -->

A policy is a [TOML](https://toml.io) file with classes, their shares of a line, and rules. Shares are of the line, so
one file serves many lines.

- `lastmile policy list` lists the built-in policies.
- `lastmile policy show NAME` prints one with its rates.
- `lastmile policy check FILE` checks a file.
- A scenario uses a policy by `policy = \"sad-cbq\"` in `[access]`, in place of the queue of `up`, or by
  `lastmile run --policy NAME`. `lastmile compare` compares several.

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

Values, queues and conditions are those of [the scenario file](scenario.md). The order of rules decides: the last rule
that matches names the class, so that a later rule may re-mark. A rule with `final = true` ends the list if it matches.
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
