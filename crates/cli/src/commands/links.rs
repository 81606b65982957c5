//! Messages about the interfaces of a running shaper or line.

use std::io::Write;
use std::time::Duration;

use lastmile_live::links::{Links, Standing};
use lastmile_live::stop::Stop;
use lastmile_text::escape;

use super::ticker;

/// The time between two looks.
const LOOK: Duration = Duration::from_secs(1);

/// The faults of an interface: what keeps packets from passing now, and what will.
fn faults(standing: &Standing) -> [Option<String>; 2] {
    let Standing { name, up, carrier, left } = standing;
    let down = match (up, carrier) {
        (false, _) => Some(format!("{name} is down, and no packet passes; `ip link set {name} up` brings it up")),
        (true, false) => Some(format!("{name} has no carrier, and no packet passes")),
        (true, true) => None,
    };
    let left = left.as_ref().map(|bridge| {
        format!(
            "{name} is no port of {bridge} any more, and no packet will pass when lastmile ends; \
             `ip link set {name} master {bridge}` makes it one"
        )
    });
    [down, left]
}

/// All faults, and the interfaces that are no ports of their bridge any more.
pub(super) fn all_faults(links: &Links) -> (Vec<String>, Vec<String>) {
    let standings = links.standings();
    let all = standings.iter().flat_map(faults).flatten().collect();
    (all, standings.into_iter().filter(|standing| standing.left.is_some()).map(|standing| standing.name).collect())
}

/// The messages about a change: each fault that has come, and each that has gone.
fn changes(before: &Standing, now: &Standing) -> Vec<String> {
    let ([was_down, was_left], [down, left]) = (faults(before), faults(now));
    let name = &now.name;
    let mut told = Vec::new();
    match (was_down, down) {
        (Some(_), None) => told.push(format!("{name} is up again")),
        (was, Some(down)) if was.as_ref() != Some(&down) => told.push(down),
        _ => {}
    }
    match (was_left, left) {
        (Some(_), None) => told.push(format!("{name} is a port of {} again", before.left.as_deref().unwrap_or("it"))),
        (None, Some(left)) => told.push(left),
        _ => {}
    }
    told
}

/// Reports each change once, until `end`.
pub(super) fn watch(links: &Links, end: &Stop) {
    let sound = |name: &str| Standing { name: name.to_owned(), up: true, carrier: true, left: None };
    let mut before: Vec<Standing> = links.standings().iter().map(|standing| sound(&standing.name)).collect();
    loop {
        let standings = links.standings();
        for now in &standings {
            let earlier = before.iter().find(|earlier| earlier.name == now.name);
            earlier.map(|earlier| changes(earlier, now)).unwrap_or_default().iter().for_each(|text| tell(text));
        }
        before = standings;
        if end.within(LOOK).unwrap_or(true) {
            return;
        }
    }
}

/// Prints a message above the live view, or on standard error.
pub(super) fn tell(text: &str) {
    if !lastmile_terminal::say(text) {
        let clear = if ticker::is_watched() { "\r\x1b[K" } else { "" };
        // With standard error closed there is no reader.
        let _ = writeln!(std::io::stderr(), "{clear}{}", escape::lines(text));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_is_told_once() {
        let sound = Standing { name: "eth1".into(), up: true, carrier: true, left: None };
        let down = Standing { up: false, carrier: false, ..sound.clone() };
        let unplugged = Standing { carrier: false, ..sound.clone() };
        let left = Standing { left: Some("br0".into()), ..sound.clone() };
        let told = |before: &Standing, now: &Standing| changes(before, now).join(" ");
        assert_eq!(told(&sound, &sound) + &told(&down, &down) + &told(&left, &left), "");
        let is_down = "eth1 is down, and no packet passes; `ip link set eth1 up` brings it up";
        assert_eq!(told(&sound, &down), is_down);
        assert_eq!(told(&down, &unplugged), "eth1 has no carrier, and no packet passes");
        assert_eq!(told(&unplugged, &sound), "eth1 is up again");
        let has_left = "eth1 is no port of br0 any more, and no packet will pass when lastmile ends; \
                        `ip link set eth1 master br0` makes it one";
        assert_eq!(told(&sound, &left), has_left);
        assert_eq!(told(&left, &sound), "eth1 is a port of br0 again");
        assert_eq!(told(&left, &Standing { left: left.left.clone(), ..down.clone() }), is_down);
    }
}
