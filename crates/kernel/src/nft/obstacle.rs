//! Conditions that nft cannot test.

use lastmile_queueing::Match;

use super::formula::{Memory, Terms, rate};
use super::lines::Lines;

/// The reason why nft cannot test a condition; `None` if it can.
pub(crate) fn obstacle(condition: &Match, memory: Memory) -> Option<&'static str> {
    let untold = untold(condition, memory);
    let too_long = || Lines::of(&Terms::new(memory).formula(condition)).is_none();
    untold.or_else(|| too_long().then_some("more parts than the mark has bits for"))
}

fn untold(condition: &Match, memory: Memory) -> Option<&'static str> {
    match condition {
        Match::FirstPayload(_) => Some("first payload bytes: nft looks at one packet at a time"),
        Match::ConnectionRate(..) => Some("the rate of a connection: nobody in the kernel measures it"),
        Match::NewConnections { count, per, .. } if rate(*count, *per).is_none() => {
            Some("new connections of a host in a time that nft has no word for")
        }
        Match::ConnectionBytes(..) | Match::NewConnections { .. } | Match::FtpData if memory == Memory::None => {
            Some("connections and hosts: nothing tracks them here")
        }
        Match::Flow(_) => Some("the number of a flow: real packets have none"),
        Match::Class(_) => Some("a class of rules further up"),
        Match::Not(inner) => untold(inner, memory),
        Match::All(inner) | Match::OneOf(inner) => inner.iter().find_map(|one| untold(one, memory)),
        _ => None,
    }
}
