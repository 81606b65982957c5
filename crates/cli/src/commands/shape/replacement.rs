//! A policy in place of the one in force: a built-in policy, or the text of a file that the asker has read.
//! The shaper opens no file for it, and its line stays.

use lastmile_live::control::{LONGEST, Replacement};
use lastmile_scenario::Policy;
use lastmile_scenario::policy::{Line, LineOf, ready};

use super::super::policy;
use crate::failure::{Failure, Result};

/// The longest text of a policy: its escapes in JSON fit a request, too.
const LONGEST_TEXT: u64 = LONGEST / 3;

/// The policy on this line. A `[line]` of its own does not count.
pub(super) fn on_line(replacement: &Replacement, line: Line) -> Result<Policy> {
    let Replacement { name, text } = replacement;
    let text = text.as_deref().or_else(|| ready::text(name)).ok_or_else(|| policy::unknown(name))?;
    Policy::parse(name, text, LineOf::Caller(line)).map_err(Failure::Report)
}

/// The policy of this name, or in the file at this path.
pub(super) fn read(policy: &str) -> Result<Replacement> {
    let text = policy::text(policy)?;
    if text.len() as u64 > LONGEST_TEXT {
        return Err(Failure::new(format_args!("{policy}: a policy of at most {LONGEST_TEXT} bytes is needed")));
    }
    Ok(Replacement { name: policy.to_owned(), text: Some(text) })
}
