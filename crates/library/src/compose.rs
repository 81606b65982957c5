//! A scenario made of a line and a home.

use core::fmt::Write as _;

use lastmile_scenario::Scenario;

use crate::entry::{Home, Line};
use crate::need;

/// A scenario made of a line and a home.
#[derive(Clone, Debug)]
pub struct Composed {
    /// The file, with comments.
    pub text: String,
    /// The needs of the home that the line does not meet, one sentence each.
    pub notes: Vec<String>,
}

impl Line {
    /// The scenario of `home` behind this line.
    ///
    /// # Panics
    /// If the scenario is wrong: the library is embedded, and a test reads every pair.
    #[must_use]
    pub fn with(&self, home: &Home) -> Composed {
        let name = format!("{} on {}", home.name, self.name);
        let body = self.body(home);
        let scenario = Scenario::parse(&name, &body, &[]).unwrap_or_else(|report| panic!("{name}: {report}"));
        let notes = need::notes(&scenario);
        Composed { text: self.header(home, &notes) + &body, notes }
    }

    /// The comment at the top: what this is, and what to do with it.
    fn header(&self, home: &Home, notes: &[String]) -> String {
        let mut text = format!(
            "# {}\n#\n# Line {} and home {} of lastmile {}.\n# Comments give the source of each value, or say that it \
             is an estimate.\n#\n#     lastmile run FILE                   one simulation\n#     lastmile compare FILE\
             \x20              the usual policies\n",
            sentence(&home.about),
            self.name,
            home.name,
            env!("CARGO_PKG_VERSION"),
        );
        // An emulated line and the lab have one access line.
        if home.lines == 1 {
            text.push_str(
                "#     lastmile emulate FILE -- COMMAND    the line for a real program\n\
                 #     sudo lastmile lab FILE --both       this traffic by real hosts, next to its simulation\n",
            );
        }
        for note in notes {
            write!(text, "#\n# Note: {note}\n").expect("a string takes all");
        }
        text.push('\n');
        text
    }

    /// The file below the header.
    fn body(&self, home: &Home) -> String {
        let mut text = format!("name = \"{} on {}\"\nduration = \"{}\"\n\n", home.name, self.name, home.duration);
        writeln!(text, "# The line. {}", sentence(&self.about)).expect("a string takes all");
        if !self.intro.is_empty() {
            text.push_str("#\n");
            text.push_str(&self.intro);
        }
        text.push('\n');
        if home.lines == 1 {
            text.push_str(self.tables);
        } else {
            text.push_str(&self.several(home.lines));
        }
        write!(text, "\n# The home. {}\n\n", sentence(&home.about)).expect("a string takes all");
        text.push_str(home.tables);
        text
    }

    /// The tables of the line for several subscribers.
    fn several(&self, lines: u64) -> String {
        const ACCESS: &str = "[access]\n";
        let own = self.tables.strip_prefix(ACCESS);
        let rest = own.map_or_else(|| format!("\n{}", self.tables), str::to_owned);
        format!(
            "{ACCESS}# As many lines like this share the capacity behind them.\nlines = {lines}\n{rest}\n\
             [access.aggregation]\n# The capacity downstream. The upstream has the same here, where a real one may \
             have less.\n{}rate = \"{}\"\n",
            self.shared.comment, self.shared.rate
        )
    }
}

/// `about` with a full stop.
fn sentence(about: &str) -> String {
    format!("{about}.")
}
