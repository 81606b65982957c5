use proptest::prelude::*;

use super::*;
use crate::template::Template;

/// Seeds give 8, 10 and 12 for `rate`; `limit` is 5.
struct Known;

impl Names for Known {
    fn value(&self, name: &str) -> Result<Quantity, Missing> {
        match name {
            "rate" => Ok(Quantity::Sample(vec![8.0, 10.0, 12.0].into())),
            "limit" => Ok(Quantity::Number(5.0)),
            "kind" => Ok(Quantity::Text("fifo".to_owned())),
            _ => Err(Missing::Name(name.to_owned())),
        }
    }

    fn call(&self, function: &str, _: Option<&str>, _: &[Formula]) -> Result<Quantity, Missing> {
        Err(Missing::Name(function.to_owned()))
    }
}

fn of(text: &str) -> Result<Quantity, Missing> {
    text.parse::<Formula>().unwrap().of(&Known)
}

fn text(template: &str) -> String {
    template.parse::<Template>().unwrap().text(&Known).unwrap()
}

#[test]
fn products_bind_more_than_sums_and_both_from_the_left() {
    for (formula, expected) in [
        ("2 + 3 * 4", 14.0),
        ("10 - 4 - 3", 3.0),
        ("100 / 10 / 5", 2.0),
        ("-(2 - 5) * 1.5e1", 45.0),
        ("max(1, min(7, limit), -2)", 5.0),
        ("round(2.5) + abs(-1) + mean(rate)", 14.0),
        ("or(nothing, limit)", 5.0),
        ("if(kind == 'fifo', 1, nothing)", 1.0),
        ("only(limit >= 5, 2)", 2.0),
    ] {
        assert_eq!(of(formula), Ok(Quantity::Number(expected)), "{formula}");
    }
    assert_eq!(of("only(limit > 5, 2)"), Err(Missing::Excluded));
    assert_eq!(of("limit + nothing"), Err(Missing::Name("nothing".to_owned())));
    assert!(matches!(of("kind + 1"), Err(Missing::Kind(_))));
}

#[test]
fn figures_are_combined_seed_by_seed() {
    assert_eq!(of("rate / (2 * limit)"), Ok(Quantity::Sample(vec![0.8, 1.0, 1.2].into())));
    assert_eq!(of("rate - rate"), Ok(Quantity::Sample(vec![0.0, 0.0, 0.0].into())));
}

#[test]
fn a_template_formats_values_and_leaves_out_what_is_missing() {
    assert_eq!(text("${limit} of ${mean(rate):.2} (${limit:+.1})"), "5 of 10.00 (+5.0)");
    assert_eq!(text("${limit}$[ with ${nothing} VCs]$[ in a ${kind}]"), "5 in a fifo");
    // t(0.975, 2) = 4.303, and the standard error is 2 / sqrt(3).
    assert_eq!(text("${rate:.1}"), "10.0 \u{b1} 5.0");
    assert_eq!(text("{ limit = \"${limit} B\" }"), "{ limit = \"5 B\" }");
}

#[test]
fn conditions_have_four_forms() {
    let kind = |text: &str| text.parse::<Condition>();
    assert!(matches!(kind("0.9 < rate / 2 <= 1"), Ok(Condition::Compared(all)) if all.len() == 2));
    assert!(matches!(kind("a - b as published"), Ok(Condition::As(_, None))));
    assert!(matches!(kind("a - b as c - 65"), Ok(Condition::As(_, Some(_)))));
    assert!(matches!(kind("a not < 0"), Ok(Condition::NotBelow(..))));
    for wrong in ["a", "a <", "a as", "a not > 0", "< 5", "a < 5 6", "a ~ b"] {
        assert!(kind(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn formulas_nest_as_deep_as_a_stack_holds() {
    let nested = |depth: usize| format!("{}1{}", "(".repeat(depth), ")".repeat(depth)).parse::<Formula>();
    assert!(nested(20).is_ok());
    assert!(nested(100_000).unwrap_err().contains("inside one another"));
    assert!("-".repeat(100_000).parse::<Formula>().is_err());
    assert!("$[".repeat(100_000).parse::<Template>().is_err());
}

fn as_text(formula: &Formula) -> String {
    match formula {
        Formula::Number(number) => number.to_string(),
        Formula::Text(text) => format!("'{text}'"),
        Formula::Name(name) => name.clone(),
        Formula::Negative(of) => format!("-({})", as_text(of)),
        Formula::Operation(one, operator, other) => {
            format!("({}) {} ({})", as_text(one), operator.as_str(), as_text(other))
        }
        Formula::Call { function, arguments, .. } => {
            format!("{function}({})", arguments.iter().map(as_text).collect::<Vec<_>>().join(", "))
        }
    }
}

fn formula() -> impl Strategy<Value = Formula> {
    let leaf = prop_oneof![
        (0_u32..1_000_000).prop_map(|number| Formula::Number(f64::from(number) / 8.0)),
        "[a-z][a-z_.]{0,8}".prop_map(Formula::Name),
        "[a-z ]{0,8}".prop_map(Formula::Text),
    ];
    leaf.prop_recursive(4, 24, 3, |inner| {
        let operators = [Operator::Add, Operator::Subtract, Operator::Multiply, Operator::Divide];
        let pair = (inner.clone(), 0..operators.len(), inner.clone());
        prop_oneof![
            inner.clone().prop_map(|of| Formula::Negative(Box::new(of))),
            pair.prop_map(move |(one, at, other)| Formula::Operation(Box::new(one), operators[at], Box::new(other))),
            (inner.clone(), inner).prop_map(|(one, other)| Formula::Call {
                function: "max".to_owned(),
                run: None,
                arguments: vec![one, other]
            }),
        ]
    })
}

proptest! {
    /// A formula that is written and read again is unchanged.
    #[test]
    fn a_formula_is_read_as_it_is_written(formula in formula()) {
        prop_assert_eq!(as_text(&formula).parse::<Formula>(), Ok(formula));
    }

    /// No text makes the readers panic, and an error quotes what it is about.
    #[test]
    fn any_text_is_read_or_refused(text in "[-a-z0-9 .,'+*/<>=@$\\[\\]{}():_é]{0,40}") {
        if let Err(error) = text.parse::<Formula>() {
            prop_assert!(error.contains(&text), "{}", error);
        }
        let _ = text.parse::<Condition>();
        let _ = text.parse::<Template>();
    }
}
