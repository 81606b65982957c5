//! The characters and colours of the terminal, by the environment.

/// The way in which a terminal is drawn on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Look {
    /// Block elements and line drawing; otherwise ASCII.
    pub(crate) unicode: bool,
    /// Colours; otherwise bold and dim type only.
    pub(crate) colour: bool,
}

/// The look by environment variables; `None` for a terminal that cannot place the cursor.
pub(crate) fn look(variable: impl Fn(&str) -> Option<String>) -> Option<Look> {
    let set = |name: &str| variable(name).filter(|value| !value.is_empty());
    let terminal = set("TERM")?;
    if terminal == "dumb" || terminal == "unknown" {
        return None;
    }
    // The order of setlocale(3).
    let locale = ["LC_ALL", "LC_CTYPE", "LANG"].into_iter().find_map(set).unwrap_or_default().to_lowercase();
    let utf8 = locale.contains("utf-8") || locale.contains("utf8");
    Some(Look {
        // The fonts of the kernel's console lack most block elements.
        unicode: utf8 && terminal != "linux",
        colour: set("NO_COLOR").is_none() && !terminal.contains("mono"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn by(variables: &[(&str, &str)]) -> Option<Look> {
        look(|name| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned()))
    }

    #[test]
    fn the_first_variable_that_is_set_decides_the_characters() {
        let unicode = |variables: &[(&str, &str)]| by(variables).map(|look| look.unicode);
        assert_eq!(unicode(&[("TERM", "xterm"), ("LANG", "de_DE.UTF-8")]), Some(true));
        assert_eq!(unicode(&[("TERM", "xterm"), ("LANG", "C.utf8")]), Some(true));
        assert_eq!(unicode(&[("TERM", "xterm"), ("LANG", "de_DE.UTF-8"), ("LC_ALL", "C")]), Some(false));
        assert_eq!(unicode(&[("TERM", "xterm"), ("LANG", "de_DE.UTF-8"), ("LC_ALL", "")]), Some(true));
        assert_eq!(unicode(&[("TERM", "linux"), ("LANG", "de_DE.UTF-8")]), Some(false));
        assert_eq!(unicode(&[("TERM", "xterm")]), Some(false));
    }

    #[test]
    fn colours_are_a_choice_and_a_terminal_must_place_the_cursor() {
        assert_eq!(by(&[("TERM", "xterm"), ("NO_COLOR", "1")]).map(|look| look.colour), Some(false));
        assert_eq!(by(&[("TERM", "xterm"), ("NO_COLOR", "")]).map(|look| look.colour), Some(true));
        assert_eq!(by(&[("TERM", "dumb")]), None);
        assert_eq!(by(&[]), None);
    }
}
