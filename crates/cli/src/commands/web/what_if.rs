//! "What would change if" on the page: the policy that it asks for, the limits of every answer, and the answer as JSON.

use lastmile_dashboard::hub::Question;
use lastmile_lab::what_if::Answer;
use lastmile_live::control::Replacement;

/// The name of a policy that is pasted into the page.
pub(in crate::commands) const TEXT: &str = "text of the dashboard";

/// The policy that a page asks for.
pub(in crate::commands) fn asked(question: &Question) -> Replacement {
    match question {
        Question::Policy(name) => Replacement { name: name.clone(), text: None },
        Question::Text(text) => Replacement { name: TEXT.to_owned(), text: Some(text.clone()) },
    }
}

/// The limits of an answer; one is of the program alone.
pub(in crate::commands) const fn limits(own: &'static str) -> [&'static str; 5] {
    [
        "Open loop: packets arrive at the times at which they did arrive. Real senders would react to other delays \
         and losses: a faster sender is not seen here, and a dropped packet is not retransmitted.",
        "Compare queueing delay and drops of traffic that does not adapt (calls, games, DNS) with confidence; take \
         bulk transfers as a sign of the direction.",
        own,
        "Only headers are recorded: rules on contents and FTP's data connections match nothing.",
        "Connections that opened before the record have no known window scale, so a window clamp leaves them alone.",
    ]
}

/// The answer as JSON.
pub(in crate::commands) fn json(answer: &Answer<'_>) -> Result<String, String> {
    serde_json::to_string(answer).map_err(|error| error.to_string())
}
