//! The styles of headings and of less important text.

use ratatui::style::{Color, Modifier, Style};

use crate::locale::Look;

/// The style of headings.
pub(super) fn head(look: Look) -> Style {
    if look.colour { Style::new().fg(Color::Cyan) } else { Style::new().add_modifier(Modifier::BOLD) }
}

/// The style of what is less important.
pub(super) fn dim(look: Look) -> Style {
    if look.colour { Style::new().fg(Color::DarkGray) } else { Style::new() }
}
