//! Names of network devices as arguments.

/// Accepts a name that the kernel allows and that no tool interprets differently: as an option, a
/// word of nft(8), a variable of systemd.
pub(super) fn name(text: &str) -> Result<String, String> {
    /// IFNAMSIZ without its NUL.
    const LONGEST: usize = 15;
    let usual = |c: char| c.is_ascii_alphanumeric() || "._-@+".contains(c);
    let wrong = if text.is_empty() || text.len() > LONGEST {
        Some(format!("the name of a device has 1 to {LONGEST} characters"))
    } else if let Some(bad) = text.chars().find(|c| !usual(*c)) {
        Some(format!("the name of a device has no {bad:?}: letters, digits and . _ - @ + will do"))
    } else {
        text.starts_with(['-', '.']).then(|| "the name of a device begins with a letter or a digit".to_owned())
    };
    wrong.map_or_else(|| Ok(text.to_owned()), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_devices_have_no_character_with_a_meaning() {
        for fine in ["eth0", "eth0.7", "br-lan", "wlp3s0", "enp0s31f6.4094", "_x", "a@b", "lm-home"] {
            assert_eq!(name(fine).as_deref(), Ok(fine));
        }
        for wrong in ["", "-x", ".", "..", "a b", "a;b", "a\nb", "a/b", "a:b", "$x", "%i", "\u{e9}", "a234567890123456"]
        {
            assert!(name(wrong).is_err(), "{wrong:?}");
        }
    }
}
